# Runs in a container of the sandbox image, as root: a tar of the shell, the usual small programs, their libraries and
# sbxd on stdout. A tenth of the image, so that an engine of a test's own has it in a fraction of a second.
set -eu
cd /
{
  for package in bash dash coreutils grep sed procps findutils util-linux mawk perl-base tar; do dpkg -L "$package"; done
  echo /usr/bin/sbxd
} | sed 's,^/bin,/usr/bin,; s,^/sbin,/usr/sbin,' | grep -E '^/usr/s?bin/|^/usr/lib/.*/perl-base/' | sort -u >/tmp/programs
grep -E 'bin/' /tmp/programs | xargs ldd 2>/dev/null | grep -oE '/lib[^ ]+' | sed 's,^/lib,/usr/lib,' | sort -u >/tmp/libraries
{
  cat /tmp/programs /tmp/libraries
  xargs readlink -f </tmp/libraries
  printf '%s\n' /bin /sbin /lib /lib64 /usr/bin/sh /usr/bin/awk /etc/alternatives/awk /etc/passwd /etc/group \
    /etc/profile /etc/bash.bashrc /usr/lib/sandlot/session.so \
    /usr/lib/sandlot/default.bpf /usr/lib/sandlot/debug.bpf /workspace /tmp /var/tmp /usr/local/bin
} | sed 's,^/,,' | sort -u | while read -r path; do if [ -e "$path" ]; then echo "$path"; fi; done >/tmp/list
tar -c --no-recursion --one-file-system -T /tmp/list
