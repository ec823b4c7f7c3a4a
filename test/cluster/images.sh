#!/usr/bin/env bash
# images.sh TOOL STORE IMAGE ROOT…: fills each ROOT as the root folder of a containerd that has the pause image and
# Docker's IMAGE (NAME:TAG), and prints the reference of that image by its digest. An image is unpacked once a machine, into STORE;
# a root names layers and blobs there by symbolic links, and copies only the databases.
set -euo pipefail
tool=$1 store=$2 image=$3
shift 3
mkdir -p "$store/references"
exec 9>"$store/lock"
flock 9

id=$(docker image inspect --format '{{.Id}}' "$image")
reference=$store/references/${id#sha256:}
if [[ ! -e $reference ]]; then
  run=$(mktemp -d)
  trap 'kill "$containerd" 2>/dev/null || true; wait; rm -rf "$run"' EXIT
  printf 'version = 2\nroot = "%s"\nstate = "%s"\ndisabled_plugins = ["io.containerd.grpc.v1.cri"]\n[grpc]\naddress = "%s"\n' \
    "$store/root" "$run/state" "$run/socket" >"$run/config.toml"
  unshare --mount setpriv --pdeathsig KILL containerd -c "$run/config.toml" >"$store/log" 2>&1 9>&- &
  containerd=$!
  images() { ctr --address "$run/socket" --namespace k8s.io images "$@"; }
  for _ in $(seq 100); do [[ ! -S $run/socket ]] || break; sleep 0.1; done
  images import "$tool/pause.tar" >/dev/null
  docker save "$image" | images import - >/dev/null
  name=docker.io/$image
  digest=$(images ls "name==$name" | awk 'NR == 2 { print $3 }')
  images tag --force "$name" "localhost/${image%:*}@$digest" >/dev/null
  kill "$containerd"
  wait "$containerd" || true
  echo "localhost/${image%:*}@$digest" >"$reference"
fi

blobs=io.containerd.content.v1.content/blobs/sha256
layers=io.containerd.snapshotter.v1.overlayfs
for root; do
  mkdir -p "$root"/{$blobs,$layers/snapshots,io.containerd.metadata.v1.bolt}
  ln -s "$store/root/$blobs"/* "$root/$blobs/"
  ln -s "$store/root/$layers/snapshots"/* "$root/$layers/snapshots/"
  cp "$store/root/$layers/metadata.db" "$root/$layers/"
  cp "$store/root/io.containerd.metadata.v1.bolt/meta.db" "$root/io.containerd.metadata.v1.bolt/"
done
cat "$reference"
