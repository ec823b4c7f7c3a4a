#!/usr/bin/env bash
# Makes the sandbox image, if it is not there already, and prints its id and tag on the last line of stdout:
#
#   sha256:… sandlot/sandbox:<content hash>
#
# The hash covers everything that goes in (docker/sandbox, docker/ca, the base image), so an unchanged checkout
# costs a fraction of a second. The same image is also tagged sandlot/sandbox:latest. Steps and their seconds go to
# stderr. Safe to interrupt and to run twice at once.
#
# --full                 make sandlot/sandbox-full of it as well, in the same way, and print that
#
# BASE                   base image to use instead of debian:bookworm-slim, or of one made by debootstrap
# SANDLOT_BUILD_NETWORK  network of the build containers (default: the engine's; host is tried when names do not resolve)
set -euo pipefail

docker=$(cd "$(dirname "$0")" && pwd)
name=sandlot/sandbox
full=$name-full
[[ $# == 0 || ($# == 1 && $1 == --full) ]] || { echo "Usage: docker/build-images.sh [--full]" >&2; exit 2; }

say() { printf '%s\n' "$*" >&2; }
fail() { say "build-images: $*"; exit 1; }
step() { # step "text" command...: run it, show how long it took
  local text=$1 from=$SECONDS
  shift
  say "  … $text"
  "$@" || return
  say "  ✓ $text ($((SECONDS - from)) s)"
}

command -v docker >/dev/null || fail "the docker command is missing. Install Docker Engine, or run ./sandlot up, which does."
docker version --format '{{.Server.Version}}' >/dev/null 2>&1 ||
  fail "no Docker engine answers at ${DOCKER_HOST:-/var/run/docker.sock}. Start it (systemctl start docker) or set DOCKER_HOST."

# One build at a time; a second one waits and then finds the work done.
exec 9<"$docker/build-images.sh"
flock 9

have() { docker image inspect "$1" >/dev/null 2>&1; }

pull_slim() { timeout 180 docker pull --quiet debian:bookworm-slim >/dev/null 2>&1; }

find_base() { # sets $base
  if [[ -n ${BASE:-} ]]; then
    base=$BASE
    have "$base" || step "pull $base" docker pull --quiet "$base" >/dev/null || fail "the base image $base can be neither found nor pulled."
  elif have debian:bookworm-slim; then
    base=debian:bookworm-slim
  elif have sandlot/base:bookworm; then
    base=sandlot/base:bookworm
  elif step "pull debian:bookworm-slim" pull_slim; then
    base=debian:bookworm-slim
  else
    say "  – no registry gives debian:bookworm-slim; making a base image instead"
    step "make a base image with debootstrap" "$docker/base-image.sh" >/dev/null || exit 1
    base=sandlot/base:bookworm
  fi
}

content_hash() {
  {
    docker image inspect --format '{{.Id}}' "$base"
    cd "$docker"
    find sandbox/Dockerfile sandbox/Makefile sandbox/src sandbox/session sandbox/reads sandbox/filter.py sandbox/seccomp.json sandbox/seccomp-debug.json sandbox/etc ca -type f ! -name .gitkeep -print0 |
      LC_ALL=C sort -z | xargs -0 sha256sum
  } | sha256sum | cut -c1-16
}

full_hash() {
  {
    docker image inspect --format '{{.Id}}' "$name:$hash"
    sha256sum <"$docker/sandbox-full/Dockerfile"
  } | sha256sum | cut -c1-16
}

is_made() { # is_made <name> <hash>
  [[ $(docker image inspect --format '{{index .Config.Labels "sandlot.content"}}' "$1:$2" 2>/dev/null) == "$2" ]]
}

build() { # build <arguments of docker build>
  local builder=0
  docker buildx version >/dev/null 2>&1 && builder=1
  # A build that is interrupted leaves no container.
  DOCKER_BUILDKIT=$builder docker build --force-rm "$@" >"$log" 2>&1
}

build_or_explain() { # build_or_explain <arguments of docker build>
  log=$(mktemp "${TMPDIR:-/tmp}/sandlot-build.XXXXXX")
  trap 'rm -f "$log"' EXIT
  if [[ -n ${SANDLOT_BUILD_NETWORK:-} ]]; then
    build --network "$SANDLOT_BUILD_NETWORK" "$@" && return
  else
    build "$@" && return
    local bridge
    bridge=$(sed -n 's/.*could not find bridge \([^:]*\):.*/\1/p' "$log" | head -n 1)
    if [[ -n $bridge ]]; then
      fail "the engine's network bridge $bridge is missing on this machine (another engine that was started with --bridge=none removes it)." \
        "A restart of the engine makes it again: systemctl restart docker. To build without it: SANDLOT_BUILD_NETWORK=host docker/build-images.sh"
    fi
    if grep -qE 'Temporary failure resolving|Could not resolve|EAI_AGAIN|Unable to connect|Could not connect|ENOTFOUND' "$log"; then
      say "  – build containers do not reach the network; trying again with the host's"
      build --network host "$@" && return
    fi
  fi
  tail -n 30 "$log" >&2
  fail "the build failed; its last lines are above. Behind a proxy that inspects TLS, run docker/collect-ca.sh first."
}

say "sandbox image"
"$docker/collect-ca.sh" >&2
find_base
hash=$(content_hash)
if is_made "$name" "$hash"; then
  say "  ✓ up to date"
else
  step "build $name:$hash on $base (first time: two minutes)" build_or_explain --build-arg "BASE=$base" \
    --label "sandlot.content=$hash" -t "$name:$hash" -f "$docker/sandbox/Dockerfile" "$docker"
fi
docker tag "$name:$hash" "$name:latest"
if [[ ${1:-} != --full ]]; then
  echo "$(docker image inspect --format '{{.Id}}' "$name:$hash") $name:$hash"
  exit 0
fi

# Releases the lock of the smaller image: this build takes minutes.
exec 9<"$docker/sandbox-full/Dockerfile"
flock 9
full_content=$(full_hash)
say "sandbox image with more tools"
if is_made "$full" "$full_content"; then
  say "  ✓ up to date"
else
  step "build $full:$full_content (first time: some minutes)" build_or_explain --build-arg "SANDBOX=$name:$hash" \
    --label "sandlot.content=$full_content" -t "$full:$full_content" "$docker/sandbox-full"
fi
docker tag "$full:$full_content" "$full:latest"
# Two gigabytes each. What a container still stands on stays.
docker image ls --format '{{.Repository}}:{{.Tag}}' "$full" | grep -vxF -e "$full:$full_content" -e "$full:latest" |
  xargs --no-run-if-empty --max-args=1 docker image rm >/dev/null 2>&1 || true
echo "$(docker image inspect --format '{{.Id}}' "$full:$full_content") $full:$full_content"
