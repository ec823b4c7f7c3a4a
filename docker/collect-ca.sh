#!/usr/bin/env bash
# Copies the certificate authorities that this host trusts beyond Mozilla's set into docker/ca/, one per file.
#
# Every build stage trusts docker/ca/*.crt. Behind a proxy that inspects TLS, npm inside `docker build` fails
# without them. On a host without extra authorities the folder stays empty. Files made by an earlier run and
# gone from the host are removed; files you put there yourself are kept. Idempotent; prints a count.
set -euo pipefail

here=$(cd "$(dirname "$0")" && pwd)
out=$here/ca
mkdir -p "$out"

# One certificate a line, its base64 body without line breaks: comparable whatever the file it came from.
bodies() {
  cat "$@" 2>/dev/null | tr -d '\r' | awk '
    /-----BEGIN (TRUSTED )?CERTIFICATE-----/ { inside = 1; body = ""; next }
    /-----END (TRUSTED )?CERTIFICATE-----/   { if (inside && body != "") print body; inside = 0; next }
    inside { gsub(/[ \t]/, ""); body = body $0 }
  ' | sort -u
}

shopt -s nullglob
added=(/usr/local/share/ca-certificates/*.crt /usr/local/share/ca-certificates/*/*.crt
  /etc/pki/ca-trust/source/anchors/* /etc/ca-certificates/trust-source/anchors/*)
bundles=()
for bundle in "${NODE_EXTRA_CA_CERTS:-}" "${SSL_CERT_FILE:-}" /etc/ssl/certs/ca-certificates.crt; do
  [[ -n $bundle && -r $bundle ]] && bundles+=("$bundle")
done
stock=(/usr/share/ca-certificates/mozilla/*.crt)

# A whole bundle can only be reduced to its extras where the stock set is known (Debian and its family).
sources=("${added[@]}")
((${#stock[@]})) && sources+=("${bundles[@]}")

rm -f "$out"/host-*.crt
count=0
if ((${#sources[@]})); then
  while read -r body; do
    [[ -n $body ]] || continue
    name=host-$(printf %s "$body" | sha256sum | cut -c1-16).crt
    { echo '-----BEGIN CERTIFICATE-----'; printf '%s\n' "$body" | fold -w 64; echo '-----END CERTIFICATE-----'; } >"$out/$name"
    count=$((count + 1))
  done < <(comm -23 <(bodies "${sources[@]}") <(bodies "${stock[@]:-/dev/null}"))
fi
echo "collect-ca: $count certificate(s) beyond the stock set in docker/ca"
