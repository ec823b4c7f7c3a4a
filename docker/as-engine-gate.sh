#!/bin/sh
# Runs a command as the user sandlot-gate who may also use the Docker socket.
#
# The group of the socket differs from host to host, so no compose file can name it. This starts as root with no
# capability but those to change user and group, looks at the socket, and gives up root for good before anything else.
set -eu
socket=/var/run/docker.sock
groups=10002
if [ -S "$socket" ]; then
  groups="$groups,$(stat -c %g "$socket")"
else
  echo "as-engine-gate: there is no $socket; mount it, or no sandbox can be made" >&2
fi
exec setpriv --reuid=10002 --regid=10002 --groups="$groups" --inh-caps=-all -- "$@"
