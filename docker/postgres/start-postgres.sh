#!/bin/sh
# Creates the cluster if missing, then becomes the server. An incomplete cluster is created again.
set -eu
data=/var/lib/postgresql/15

if [ ! -d "$data" ]; then
  rm -rf "$data.new"
  initdb --pgdata="$data.new" --username=sandlot --pwfile=/database/password --auth=scram-sha-256 \
    --encoding=UTF8 --locale=C.UTF-8 >/dev/null
  echo 'create database sandlot' | postgres --single -D "$data.new" postgres >/dev/null
  mv "$data.new" "$data"
fi
exec postgres -D "$data" -c listen_addresses= -c unix_socket_directories=/database/run "$@"
