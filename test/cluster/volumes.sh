#!/usr/bin/env bash
# volumes.sh KUBE KUBECONFIG FOLDER: empties a local volume whose claim was deleted, and offers it again.
set -u
kubectl() { "$1" kubectl --kubeconfig "$2" "${@:3}"; }
while sleep 1; do # the watch ends with the API server
  kubectl "$1" "$2" get pv --watch -o jsonpath='{.metadata.name} {.status.phase}{"\n"}' |
    while read -r name phase; do
      [[ $phase == Released ]] || continue
      # The watch may be late: a claim has the volume again.
      [[ $(kubectl "$1" "$2" get pv "$name" -o jsonpath='{.status.phase}') == Released ]] || continue
      rm -rf "$3/volumes/$name" && mkdir "$3/volumes/$name" &&
        kubectl "$1" "$2" patch pv "$name" --type json -p '[{"op": "remove", "path": "/spec/claimRef"}]'
    done
done
