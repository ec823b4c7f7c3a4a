#!/usr/bin/env bash
# build.sh OUT: the programs, the pause image, the certificates and the definitions of a test cluster, into the empty folder OUT.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
out=$1
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cp -r "$here"/{kube,dns,helm} "$work"

export CGO_ENABLED=0
version=v1.36.3
# Without these the programs call themselves v0.0.0, and charts refuse such a cluster.
flags="-s -w"
for set in gitVersion=$version gitMajor=1 gitMinor=36; do flags+=" -X k8s.io/component-base/version.$set"; done
compile() { # folder, flags, package
  (cd "$work/$1" && go mod tidy && go build -trimpath -ldflags "$2" -o "$out/$1" "$3")
}
compile kube "$flags" .
compile dns "-s -w" .
compile helm "-s -w" helm.sh/helm/v3/cmd/helm

# Kinds that are no part of Kubernetes and that the chart makes; a test has no network to fetch them.
mkdir "$out/definitions"
definition() { # module, file
  cp "$(cd "$work" && go mod download -json "$1" | sed -n 's/^\t"Dir": "\(.*\)",\?$/\1/p')/$2" "$out/definitions"
}
definition sigs.k8s.io/gateway-api@v1.5.0 config/crd/experimental/gateway.networking.k8s.io_httproutes.yaml
definition github.com/prometheus-operator/prometheus-operator@v0.85.0 \
  example/prometheus-operator-crd/monitoring.coreos.com_servicemonitors.yaml

cd "$work"
gcc -static -Os -s -o pause "$here/pause.c"
tar -cf layer.tar pause
layer=$(sha256sum layer.tar | cut -d' ' -f1)
architecture=$(go env GOARCH)
echo '{"architecture":"'"$architecture"'","os":"linux","config":{"Cmd":["/pause"]},"rootfs":{"type":"layers","diff_ids":["sha256:'"$layer"'"]}}' >config.json
echo '[{"Config":"config.json","RepoTags":["localhost/pause:test"],"Layers":["layer.tar"]}]' >manifest.json
tar -cf "$out/pause.tar" layer.tar config.json manifest.json

# Every cluster has the same addresses, each in network namespaces of its own: so the certificates are made once.
mkdir -m 700 "$out/pki"
cd "$out/pki"
key() { openssl genpkey -algorithm EC -pkeyopt ec_paramgen_curve:P-256 -out "$1.key"; }
authority() { # name
  key "$1"
  openssl req -x509 -new -key "$1.key" -subj "/CN=$1" -days 3650 -out "$1.crt"
}
certificate() { # name, subject, usage, names
  key "$1"
  openssl req -new -key "$1.key" -subj "$2" |
    openssl x509 -req -CA ca.crt -CAkey ca.key -CAcreateserial -days 3650 -out "$1.crt" -extfile <(
      echo "extendedKeyUsage=$3"
      [[ -z ${4-} ]] || echo "subjectAltName=$4"
    ) 2>/dev/null
}
client() { # name, subject: with its kubeconfig
  certificate "$1" "$2" clientAuth
  cat >"$1.conf" <<CONF
apiVersion: v1
kind: Config
clusters: [{name: test, cluster: {server: "https://10.77.0.1:6443", certificate-authority-data: $(base64 -w0 ca.crt)}}]
users: [{name: $1, user: {client-certificate-data: $(base64 -w0 "$1.crt"), client-key-data: $(base64 -w0 "$1.key")}}]
contexts: [{name: test, context: {cluster: test, user: $1}}]
current-context: test
CONF
}
authority ca
authority foreign-ca # signs nothing here: a client that knows only this one must refuse the server
certificate apiserver /CN=kube-apiserver serverAuth \
  IP:127.0.0.1,IP:10.77.0.1,IP:10.77.0.2,IP:10.77.0.3,IP:10.96.0.1,DNS:localhost,DNS:kubernetes,DNS:kubernetes.default,DNS:kubernetes.default.svc
certificate kubelet-client /O=system:masters/CN=kubelet-client clientAuth
client admin /O=system:masters/CN=admin
for name in kube-controller-manager kube-scheduler kube-proxy; do client $name /CN=system:$name; done
for node in 1 2; do
  client node$node /O=system:nodes/CN=system:node:node$node
  certificate kubelet$node /O=system:nodes/CN=system:node:node$node serverAuth IP:10.77.0.1$node,DNS:node$node
done
openssl genrsa -out service-accounts.key 2048 2>/dev/null
openssl rsa -in service-accounts.key -pubout -out service-accounts.pub 2>/dev/null
