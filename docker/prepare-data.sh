#!/bin/sh
# Gives each process of the compose file its part of the data folder $1, and of the folder of keys $2 where that is
# set, before they start.
#
# The folder is ai-agent's, and its group may read. The service, of that group, has $1/service for
# itself. In earlier versions both were one user with everything in $1: the service's files move once.
# Idempotent, also after an interruption: accounts.db moves last.
set -eu
data=$1
keys=${2:-}

# Partly restored data must not be started as if it were complete.
if [ -e "$data/restoring" ]; then
  echo "prepare-data: a restore into $data was interrupted; run it again, it starts over (docs/backup.md)" >&2
  exit 1
fi

chown 10001:10001 "$data"
chmod 0750 "$data"
mkdir -p "$data/service/keys"

# Both exist if an earlier version has run in between and made a new one: the target is kept.
move() {
  [ -e "$data/$1" ] || return 0
  if [ -e "$data/service/$1" ]; then
    echo "prepare-data: $data/service/$1 is in use; $data/$1 of an earlier version stays where it is, unused" >&2
  else
    mv "$data/$1" "$data/service/$1"
  fi
}
for name in keys/service-cookies keys/setup-token keys/push keys/previews uploads; do move "$name"; done
# The log of a database belongs to it: together, or not at all.
if [ -e "$data/accounts.db" ] && [ ! -e "$data/service/accounts.db" ]; then
  [ ! -e "$data/accounts.db-wal" ] || mv -f "$data/accounts.db-wal" "$data/service/accounts.db-wal"
  rm -f "$data"/accounts.db-shm "$data"/accounts.db.migrating* "$data"/accounts.db.writing*
  for file in "$data"/accounts.db.before-*; do move "${file##*/}"; done
fi
move accounts.db

# The service may be running when compose runs this again: its files come and go.
find "$data/service" -ignore_readdir_race ! -user 10003 -exec chown -h 10003:10003 {} +
chmod 0700 "$data/service" "$data/service/keys"

# Modes of the current ai-agent.
[ ! -d "$data/keys" ] || chmod 0700 "$data/keys"
[ ! -d "$data/run" ] || chmod 0750 "$data/run"
for file in "$data"/sessions.db.before-* "$data/sessions.db.migrating" "$data/run/agent.lock"; do
  [ ! -e "$file" ] || chmod 0600 "$file"
done

# Both make keys in one folder: neither reads, replaces or removes the other's, but for what both show each other.
[ -n "$keys" ] || exit 0
chown 10001:10001 "$keys"
chmod 1770 "$keys"
if [ ! -e "$keys/agent-token" ]; then
  (umask 077 && head -c 48 /dev/urandom | base64 -w 0 >"$keys/agent-token.new")
  mv "$keys/agent-token.new" "$keys/agent-token"
fi
give() {
  [ -f "$keys/$3" ] && [ ! -L "$keys/$3" ] || return 0
  chown "$1" "$keys/$3"
  chmod "$2" "$keys/$3"
}
for name in deployment.json secrets.json; do give 10001:10001 0600 "$name"; done
for name in service-cookies setup-token push previews alerts; do give 10003:10003 0600 "$name"; done
give 10001:10001 0640 agent-token
