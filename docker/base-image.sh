#!/usr/bin/env bash
# Makes a minimal Debian base image without any image registry: debootstrap, then `docker import`.
#
# Used only where debian:bookworm-slim can be neither found nor pulled. Needs root and the package debootstrap.
# Prints the tag on the last line of stdout; everything else goes to stderr. Does nothing when the tag exists.
#
#   docker/base-image.sh [--force]
#
# SANDLOT_APT_MIRROR  Debian mirror to use (default http://deb.debian.org/debian)
set -euo pipefail

tag=sandlot/base:bookworm
mirror=${SANDLOT_APT_MIRROR:-http://deb.debian.org/debian}
suite=bookworm

say() { printf '%s\n' "$*" >&2; }
fail() { say "base-image: $*"; exit 1; }

if [[ ${1:-} != --force ]] && docker image inspect "$tag" >/dev/null 2>&1; then
  say "base-image: $tag is there already"
  echo "$tag"
  exit 0
fi

[[ $(id -u) == 0 ]] || fail "needs root to run debootstrap. Run it with sudo, or set BASE to a Debian image you have."
command -v debootstrap >/dev/null || fail "debootstrap is missing. Install it: apt-get install --no-remove debootstrap"

work=$(mktemp -d "${TMPDIR:-/tmp}/sandlot-base.XXXXXX")
# --one-file-system: should debootstrap be interrupted with its /proc still mounted, nothing below it is touched.
cleanup() {
  mountpoint -q "$work/root/proc" && umount "$work/root/proc"
  mountpoint -q "$work/root/sys" && umount "$work/root/sys"
  rm -rf --one-file-system "$work"
}
trap cleanup EXIT
root=$work/root

say "base-image: debootstrap $suite from $mirror (about a minute)"
debootstrap --variant=minbase --include=ca-certificates "$suite" "$root" "$mirror" >"$work/log" 2>&1 || {
  tail -n 20 "$work/log" >&2
  fail "debootstrap failed, its last lines are above. Is $mirror reachable? SANDLOT_APT_MIRROR names another one."
}

printf 'deb %s %s main\ndeb %s %s-updates main\ndeb %s %s-security main\n' \
  "$mirror" "$suite" "$mirror" "$suite" "${mirror%/debian}/debian-security" "$suite" >"$root/etc/apt/sources.list"
# No service may be started by a package's script, nothing recommended, no indexes or archives in the image.
printf '#!/bin/sh\nexit 101\n' >"$root/usr/sbin/policy-rc.d"
chmod 0755 "$root/usr/sbin/policy-rc.d"
printf 'APT::Install-Recommends "false";\nAcquire::Languages "none";\n' >"$root/etc/apt/apt.conf.d/90sandlot"
# A layer that is not finished is thrown away, so dpkg need not wait for the disk after each file: a third faster.
echo force-unsafe-io >"$root/etc/dpkg/dpkg.cfg.d/90sandlot"
rm -rf "$root"/var/cache/apt/archives/*.deb "$root"/var/lib/apt/lists/* "$root"/var/log/*.log "$root"/var/log/apt
rm -rf "$root"/usr/share/{doc,man,info,locale}/*
: >"$root/etc/machine-id"
rm -f "$root/etc/hostname" "$root/etc/resolv.conf"

say "base-image: docker import as $tag"
tar --numeric-owner -C "$root" -c . | docker import --change 'CMD ["bash"]' --change 'ENV LANG=C.UTF-8' - "$tag" >&2
echo "$tag"
