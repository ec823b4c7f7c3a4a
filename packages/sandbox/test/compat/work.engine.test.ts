/**
 * Ordinary work must not notice the hardening: no case here may need a looser sandbox than every
 * person gets.
 */
import { extent } from '../../../../test/campaign.ts'
import { compatible, succeed, type Work } from './box.ts'

const WORK: readonly Work[] = [
  {
    title: 'keys: an ssh-agent holds one and signs with it',
    script: `
      eval "$(ssh-agent -a "$PWD/agent")" >/dev/null; trap 'ssh-agent -k >/dev/null' EXIT
      ssh-keygen -q -t ed25519 -N '' -f key; ssh-add -q key; rm key; ssh-add -l | grep -q ED25519
      echo text >t; ssh-keygen -q -Y sign -f key.pub -n file t; ssh-keygen -q -Y check-novalidate -n file -s t.sig <t
      git init -q; git -c gpg.format=ssh -c user.signingkey="$PWD/key.pub" commit -qS --allow-empty -m signed; git cat-file commit HEAD | grep -q 'SSH SIGNATURE'`,
  },
  {
    title: 'what is not there and what is not allowed says so in plain words, and a script goes on',
    script: `
      for name in cargo go pnpm yarn tmux docker sudo systemctl; do
        if said=$("$name" --version 2>&1); then exit 1; else code=$?; fi; test $code = 127; grep -q 'not found' <<<"$said"
      done
      refused() { if said=$("$@" 2>&1); then exit 1; fi; grep -qiE 'not permitted|denied|read-only|superuser' <<<"$said"; }
      refused unshare -Ur true; refused unshare -n true; refused mount -t tmpfs none /mnt; refused chown 0 .; refused mknod x c 1 3
      refused nice -n -5 sh -c 'nice | grep -qx -- -5 || { echo not permitted; exit 1; }'; refused touch /usr/bin/x; refused chroot . /bin/true
      if curl -sS --max-time 3 http://10.0.0.1/ 2>said; then exit 1; fi; test -s said; if python3 -m pip download -q nothing 2>/dev/null; then exit 1; fi; echo on`,
  },
  {
    title: 'time limits and helpers in the background: timeout, nohup, wait, traps, loops that sleep',
    script: `
      ended() { local code=0; "$@" || code=$?; echo $code; }
      test "$(ended timeout 0.2 sleep 30)" = 124; test "$(ended timeout -s KILL 0.2 sleep 30)" = 137; test "$(ended timeout 20 false)" = 1
      nohup sh -c 'sleep 0.2; echo from nohup' >nohup.out 2>&1 & wait $!; grep -qx 'from nohup' nohup.out
      (sleep 0.1; exit 3) & (sleep 30) & code=0; wait -n || code=$?; test $code = 3; kill %2; wait %2 2>/dev/null || true
      (trap 'echo cleaned >cleaned' EXIT; exit 0); grep -q cleaned cleaned; set -m; sleep 30 & kill -STOP $!; kill -CONT $!; kill $!; set +m
      for i in 1 2 3; do date +%s%N >>ticks; sleep 0.1; done; test "$(sort -u ticks | wc -l)" = 3
      setsid sh -c 'sleep 0.1; echo session >session'; until test -s session; do sleep 0.05; done; time -p true`,
  },
  {
    title: 'files of every kind: sparse, many names, pipes, locks, watches, attributes, owners, dates',
    script: `
      truncate -s 300M sparse; echo end >>sparse; cp --sparse=always sparse copy; cmp sparse copy; test "$(du -k copy | cut -f1)" -lt 1000; rm sparse copy
      mkdir tree; seq 100 >tree/a; ln tree/a tree/b; cp -al tree linked; test "$(stat -c %h tree/a)" = 4; ln -s tree/a way; test "$(readlink -f way)" = "$PWD/tree/a"
      mkfifo pipe; (seq 1000 >pipe) & test "$(wc -l <pipe)" = 1000; wait; touch -d '1969-07-20 20:17 UTC' moon; test "$(date -u -r moon +%Y)" = 1969
      install -m 750 -D way bin/tool; test "$(stat -c %a bin/tool)" = 750; umask 077; : >private; test "$(stat -c %a private)" = 600; mv -n private p; test -e p
      (flock 9; sleep 0.2; echo one >>order) 9>lock & sleep 0.05; (flock 9; echo two >>order) 9>lock; wait; test "$(tr '\\n' ' ' <order)" = 'one two '
      python3 - <<'END'
import ctypes, fcntl, os, struct
libc = ctypes.CDLL(None, use_errno=True); watch = libc.inotify_init1(0); assert libc.inotify_add_watch(watch, b'tree', 0x100 | 0x200 | 0x80) > 0
open('tree/new', 'w').close(); os.rename('tree/new', 'tree/newer'); os.unlink('tree/newer')
assert b'newer' in os.read(watch, 4096)
with open('locked', 'w') as f: fcntl.lockf(f, fcntl.LOCK_EX, 10); os.posix_fadvise(f.fileno(), 0, 0, 0); f.write('x' * 100); f.flush(); os.fsync(f.fileno())
os.setxattr('locked', 'user.note', b'kept'); assert os.getxattr('locked', 'user.note') == b'kept'
END`,
  },
  {
    title: 'large data: rg, jq, sort, awk, split and a hash over a hundred thousand lines',
    script: `
      seq 100000 | awk '{ printf "{\\"n\\":%d,\\"name\\":\\"row %d\\",\\"even\\":%s}\\n", $1, $1, $1 % 2 ? "false" : "true" }' >rows
      test "$(jq -c 'select(.even and .n > 99990) | .n' rows | tr '\\n' ' ')" = '99992 99994 99996 99998 100000 '; test "$(jq -s 'map(.n) | add' rows)" = 5000050000
      test "$(rg -c '"even":true' rows)" = 50000; test "$(rg --json 'row 99999"' rows | jq -r 'select(.type == "match") | .data.line_number')" = 99999
      split -l 1000 -d -a 3 rows part-; test "$(ls part-* | wc -l)" = 100; test "$(cat part-* | sha256sum)" = "$(sha256sum <rows)"
      sort -t: -k2,2nr -S 2M -T . -o sorted rows; head -n 1 sorted | grep -q '"n":100000'; cut -d, -f2 rows | sort -u --parallel=4 | wc -l | grep -qx 100000; find . -name 'part-*' -print0 | xargs -0 -P 8 gzip -k; zcat part-*.gz | cmp - rows`,
  },
  {
    title: 'sqlite: a journal, a write-ahead log and a query',
    script: `
      sqlite3 a.db 'pragma journal_mode=wal; create table t(n integer primary key, s text);' >/dev/null
      seq 20000 | sed 's/.*/insert into t(s) values("row &");/' | { echo 'begin;'; cat; echo 'commit;'; } | sqlite3 a.db
      test "$(sqlite3 a.db 'select count(*), max(s) from t')" = '20000|row 9999'
      sqlite3 a.db 'vacuum; pragma integrity_check' | grep -qx ok
      python3 -c 'import sqlite3; assert sqlite3.connect("a.db").execute("select count(*) from t").fetchone() == (20000,)'`,
  },
  {
    title: 'archives: tar, gzip, bzip2, xz, zip, with owners, times and links',
    script: `
      mkdir -p in/deep; head -c 300000 /dev/urandom >in/deep/noise; ln -s deep/noise in/link; ln in/deep/noise in/hard
      mkfifo in/pipe; chmod 751 in/deep; touch -d 2020-02-02 in/deep/noise
      for kind in z j J; do
        tar -c\${kind}f a.tar in; mkdir out; tar -xpf a.tar -C out; diff -r --no-dereference -x pipe in out/in
        test "$(stat -c '%a %Y' out/in/deep/noise)" = "$(stat -c '%a %Y' in/deep/noise)"; rm -r out a.tar
      done
      rm in/pipe; zip -qry a.zip in; unzip -q a.zip -d out; diff -r --no-dereference in out/in
      xz -k -T2 in/deep/noise && xz -t in/deep/noise.xz`,
  },
  {
    title: 'keys and who one is: ssh-keygen, whoami, id, getpass',
    script: `
      ssh-keygen -q -t ed25519 -N '' -f key; ssh-keygen -l -f key; ssh-keygen -y -f key | cut -d' ' -f1,2 | diff - <(cut -d' ' -f1,2 key.pub)
      echo text >t; ssh-keygen -q -Y sign -f key -n file t; ssh-keygen -q -Y check-novalidate -n file -s t.sig <t
      test "$(whoami)" = user; test "$(id -un)" = user; test ~ = /workspace; test "$(getent passwd user | head -n 1 | cut -d: -f6)" = /workspace
      test -w ~; umask; ulimit -n`,
  },
  {
    title: 'pipelines: gigabytes through many programs',
    script: `
      bytes=${extent(50_000_000, 4_000_000_000)}
      test "$(head -c $bytes /dev/zero | cat | tr '\\0' 'x' | wc -c)" = $bytes
      test "$(seq 50000 | sort -R | sort -n -S 64M | sha256sum)" = "$(seq 50000 | sha256sum)"
      head -c ${extent(10_000_000, 500_000_000)} /dev/zero | tee >(sha256sum >a) | sha256sum >b; until test -s a; do sleep 0.05; done; diff a b
      seq 100000 | xargs -P 4 -n 1000 echo | wc -w | grep -qx 100000`,
  },
  {
    title: 'bash: process substitution, heredocs, arrays, coprocesses, traps',
    script: `
      diff <(sort <<<$'b\\na') <(printf 'a\\nb\\n')
      paste <(seq 3) <(seq 4 6) | tail -n 1 | grep -qx $'3\\t6'
      cat <<-'END' | grep -q '$HOME'
	$HOME is not read
	END
      declare -A map=([one]=1 [two]=2); test "\${map[two]}" = 2; mapfile -t lines < <(seq 5); test "\${#lines[@]}" = 5
      coproc bc_like { while read -r a b; do echo $((a + b)); done; }
      echo 20 22 >&"\${bc_like[1]}"; read -r sum <&"\${bc_like[0]}"; test "$sum" = 42
      (trap 'echo trapped >t' TERM; kill -TERM $BASHPID); grep -qx trapped t
      mkfifo pipe; (echo through >pipe) & test "$(cat pipe)" = through; wait $!
      exec {lock}>lock; flock -n $lock; if flock -n lock true; then exit 1; fi`,
  },
  {
    title: 'names in many scripts, and text in UTF-8',
    script: `
      for name in 'ä ö' '日本語' $'emoji-\\U1F600' 'שלום' $'new\\nline' '-dash' '*'; do echo "$name" >"./$name"; test "$(cat "./$name")" = "$name"; done
      test "$(find . -type f -print0 | tr -cd '\\0' | wc -c)" = 7
      test "$(printf 'grüße' | wc -m)" = 5; [[ straße =~ ^stra.e$ ]]; test "$(printf 'ÄB' | sed 's/./x/g')" = xx
      python3 -c 'import os, sys; assert "日本語" in os.listdir("."); assert sys.getfilesystemencoding() == "utf-8"; print("ß")'
      node -e 'require("fs").readdirSync(".").includes("日本語") || process.exit(1)'
      git init -q; git add -- '日本語'; git commit -qm 'ünïcode'; git log -1 --format=%s | grep -qx 'ünïcode'; locale 2>&1 | grep -q UTF-8`,
  },
  {
    title: 'tools people reach for: rg, jq, find, xargs, patch, file, curl, ps',
    script: `
      mkdir d; printf 'alpha\\nbeta\\n' >d/f; test "$(rg -n beta)" = 'd/f:2:beta'
      echo '{"a":[1,{"b":"c"}]}' | jq -er '.a[1].b' | grep -qx c
      cp d/f g; sed -i s/beta/gamma/ g; diff -u d/f g >p || true; patch -s d/f <p; diff d/f g
      file -b d/f | grep -q ASCII; ps -o comm= -p $$ | grep -qx bash; find . -newer p -print -quit; df . >/dev/null; free >/dev/null; date -u
      if curl -sS --max-time 3 http://example.invalid; then exit 1; fi; echo hi >h; curl -sS "file://$PWD/h" | grep -qx hi`,
  },
  {
    title: 'long work: many files, deep directories, a thousand processes one after the other',
    slow: true,
    script: `
      seq 3000 | xargs -I{} -P 2 touch f{} ; test "$(ls | wc -l)" = 3000; rm f*
      mkdir -p $(printf 'd/%.0s' {1..60}); find . -depth -delete 2>/dev/null || true
      for i in {1..1000}; do /bin/true; done
      truncate -s 100M sparse; test "$(du -k sparse | cut -f1)" -lt 1000; head -c 10M /dev/zero >real; sync real`,
  },
]

compatible('compatibility', WORK, 4, succeed)
