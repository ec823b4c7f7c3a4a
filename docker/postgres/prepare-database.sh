#!/bin/sh
# Before PostgreSQL of the compose file: a password of this deployment's own, and the address that has it.
#
#   $1/password   for PostgreSQL, when it makes its cluster
#   $1/url        DATABASE_URL_FILE of ai-agent (10001), the service (of its group) and backups
#   $1/run        PostgreSQL's socket; it listens nowhere else
#
# and gives PostgreSQL $2, where it makes its cluster. Idempotent, also after an interruption: a password that is there stays.
set -eu
folder=$1
cluster=$2
umask 077

if [ ! -s "$folder/password" ]; then
  head -c 24 /dev/urandom | base64 | tr '+/' '-_' >"$folder/password.new"
  mv "$folder/password.new" "$folder/password"
fi
printf 'postgres://sandlot:%s@localhost/sandlot?host=%s/run\n' "$(cat "$folder/password")" "$folder" >"$folder/url.new"
chown 10001:10001 "$folder/url.new"
chmod 0440 "$folder/url.new"
mv "$folder/url.new" "$folder/url"
chown 10005:10005 "$folder/password"
mkdir -p "$folder/run"
chown 10005:10005 "$folder/run" "$cluster"
chmod 0755 "$folder" "$folder/run"
chmod 0700 "$cluster"
