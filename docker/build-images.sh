#!/usr/bin/env bash
# Makes the sandbox image, if it is not there already, and prints its id and tag on the last line of stdout:
#
#   sha256:… sandlot/sandbox:<content hash>
#
# The hash covers everything that goes in (docker/sandbox, docker/ca, the base image), so an unchanged checkout
# costs a fraction of a second. The same image is also tagged sandlot/sandbox:latest. Steps and their seconds go to
# stderr. Safe to interrupt and to run twice at once.
#
# BASE                   base image to use instead of debian:bookworm-slim, or of one made by debootstrap
# SANDLOT_BUILD_NETWORK  network of the build containers (default: the engine's; host is tried when names do not resolve)
set -euo pipefail

docker=$(cd "$(dirname "$0")" && pwd)
name=sandlot/sandbox

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
    # The seccomp profile is read by the controller and is not in the image.
    find sandbox/Dockerfile sandbox/Makefile sandbox/src sandbox/session sandbox/etc ca -type f ! -name .gitkeep -print0 |
      LC_ALL=C sort -z | xargs -0 sha256sum
  } | sha256sum | cut -c1-16
}

build() { # build [docker build options]
  local builder=0
  docker buildx version >/dev/null 2>&1 && builder=1
  DOCKER_BUILDKIT=$builder docker build "$@" --build-arg "BASE=$base" --label "sandlot.content=$hash" \
    -t "$name:$hash" -f "$docker/sandbox/Dockerfile" "$docker" >"$log" 2>&1
}

build_or_explain() {
  log=$(mktemp "${TMPDIR:-/tmp}/sandlot-build.XXXXXX")
  trap 'rm -f "$log"' EXIT
  if [[ -n ${SANDLOT_BUILD_NETWORK:-} ]]; then
    build --network "$SANDLOT_BUILD_NETWORK" && return
  else
    build && return
    if grep -qE 'Temporary failure resolving|Could not resolve|EAI_AGAIN|Unable to connect|Could not connect|ENOTFOUND' "$log"; then
      say "  – build containers do not reach the network; trying again with the host's"
      build --network host && return
    fi
  fi
  tail -n 30 "$log" >&2
  fail "the build failed; its last lines are above. Behind a proxy that inspects TLS, run docker/collect-ca.sh first."
}

say "sandbox image"
"$docker/collect-ca.sh" >&2
find_base
hash=$(content_hash)
if [[ $(docker image inspect --format '{{index .Config.Labels "sandlot.content"}}' "$name:$hash" 2>/dev/null) == "$hash" ]]; then
  say "  ✓ up to date"
else
  step "build $name:$hash on $base (first time: two minutes)" build_or_explain
fi
docker tag "$name:$hash" "$name:latest"
echo "$(docker image inspect --format '{{.Id}}' "$name:$hash") $name:$hash"
