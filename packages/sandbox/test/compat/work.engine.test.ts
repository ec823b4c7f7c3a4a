/** Ordinary work must not notice the hardening: no case here may need a looser sandbox than every person gets. */
import { extent } from '../../../../test/campaign.ts'
import { compatible, succeed, type Work } from './box.ts'

/** A loopback HTTP server over the directory `$1` on a port of its own, which is then `$port`. */
const SERVE = `
serve() {
  python3 -u -m http.server --bind 127.0.0.1 --directory "$1" 0 >server.log 2>&1 &
  server=$!; trap 'kill $server' EXIT
  until port=$(sed -n 's/.* port \\([0-9]*\\) .*/\\1/p' server.log) && test -n "$port"; do sleep 0.05; done
}
`

const WORK: readonly Work[] = [
  {
    title: 'git: clone, commit, merge and rebase of local repositories',
    script: `
      git init -q origin; cd origin; echo one >file; git add file; git commit -qm one
      cd ..; git clone -q origin work; cd work
      git switch -qc side; echo side >side; git add side; git commit -qm side
      git switch -q -; echo two >>file; git commit -qam two
      git merge -q --no-edit side; git switch -qc third HEAD~1
      echo third >third; git add third; git commit -qm third; git rebase -q side
      git push -q ../origin third:third; git -C ../origin log --oneline third | wc -l
      git stash list; git worktree add -q ../tree side; git gc -q; git fsck --strict
      test "$(git log -1 --format=%an)" = "$(git config user.name || git log -1 --format=%an)"`,
  },
  {
    title: 'git: a conflict is found and solved',
    script: `
      git init -q; echo a >f; git add f; git commit -qm a
      git switch -qc x; echo x >f; git commit -qam x; git switch -q -; echo y >f; git commit -qam y
      if git merge x; then exit 1; fi; grep -q '<<<<<<<' f
      echo xy >f; git add f; git commit -qm merged; git show --stat HEAD^2`,
  },
  {
    title: 'python: a virtual environment and a wheel from a local index',
    slow: true,
    script: `${SERVE}
      python3 -m venv env
      mkdir -p src/greet index/greet
      echo 'def hello(): return "hello"' >src/greet/__init__.py
      mkdir src/greet-1.0.dist-info
      printf 'Metadata-Version: 2.1\\nName: greet\\nVersion: 1.0\\n' >src/greet-1.0.dist-info/METADATA
      printf 'Wheel-Version: 1.0\\nGenerator: us\\nRoot-Is-Purelib: true\\nTag: py3-none-any\\n' >src/greet-1.0.dist-info/WHEEL
      printf 'greet/__init__.py,,\\ngreet-1.0.dist-info/METADATA,,\\ngreet-1.0.dist-info/WHEEL,,\\ngreet-1.0.dist-info/RECORD,,\\n' >src/greet-1.0.dist-info/RECORD
      (cd src && python3 -m zipfile -c ../index/greet/greet-1.0-py3-none-any.whl greet greet-1.0.dist-info)
      serve index
      env/bin/pip install -q --disable-pip-version-check --index-url "http://127.0.0.1:$port/" greet
      test "$(env/bin/python -c 'import greet; print(greet.hello())')" = hello`,
  },
  {
    title: 'python: processes, threads, locks and shared memory',
    script: `
      cat >work.py <<'END'
import multiprocessing as mp, threading, tempfile, os, mmap, asyncio, subprocess, getpass
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import shared_memory
def square(n): return n * n
if __name__ == '__main__':
    with ProcessPoolExecutor(3) as pool: assert list(pool.map(square, range(50))) == [n * n for n in range(50)]
    with mp.Pool(2) as pool: assert sum(pool.map(square, range(10))) == 285
    memory = shared_memory.SharedMemory(create=True, size=4096); memory.buf[0] = 7; memory.close(); memory.unlink()
    threads = [threading.Thread(target=square, args=(i,)) for i in range(50)]
    for t in threads: t.start()
    for t in threads: t.join()
    with tempfile.TemporaryFile() as f: f.write(b'x' * 8192); f.flush(); mmap.mmap(f.fileno(), 8192).close()
    async def main():
        p = await asyncio.create_subprocess_exec('echo', 'hi', stdout=subprocess.PIPE)
        assert (await p.communicate())[0] == b'hi\\n'
    asyncio.run(main())
    assert getpass.getuser() == 'user' and os.path.expanduser('~') == '/workspace'
END
      python3 work.py`,
  },
  {
    title: 'npm: a package from a tarball, run by npx and in a script',
    script: `
      mkdir tool; cd tool
      echo '{"name":"tool","version":"1.0.0","bin":{"tool":"./tool.js"}}' >package.json
      printf '#!/usr/bin/env node\\nconsole.log("tool " + process.argv[2])\\n' >tool.js; chmod +x tool.js
      npm pack --silent; cd ..
      echo '{"name":"app","version":"1.0.0","scripts":{"go":"tool script"}}' >package.json
      npm install --silent ./tool/tool-1.0.0.tgz
      test "$(npx tool npx)" = 'tool npx'; test "$(npm run --silent go)" = 'tool script'; npm ls --silent`,
  },
  {
    title: 'npm: an install from a registry that runs inside',
    script: `
      mkdir registry app dep; cd dep
      echo '{"name":"dep","version":"1.2.3","main":"m.js"}' >package.json; echo 'module.exports = 42' >m.js
      npm pack --silent --pack-destination ../registry; cd ..
      cat >server.mjs <<'END'
import { createServer } from 'node:http'
import { readFileSync, writeFileSync } from 'node:fs'
import { createHash } from 'node:crypto'
const tarball = readFileSync('registry/dep-1.2.3.tgz')
const server = createServer((request, response) => {
  if (request.url.endsWith('.tgz')) return response.end(tarball)
  if (request.url !== '/dep') { response.statusCode = 404; return response.end('{}') }
  const dist = { tarball: 'http://127.0.0.1:' + server.address().port + '/dep-1.2.3.tgz',
    integrity: 'sha512-' + createHash('sha512').update(tarball).digest('base64') }
  response.setHeader('content-type', 'application/json')
  response.end(JSON.stringify({ name: 'dep', 'dist-tags': { latest: '1.2.3' },
    versions: { '1.2.3': { name: 'dep', version: '1.2.3', main: 'm.js', dist } } }))
}).listen(0, '127.0.0.1', () => writeFileSync('port', String(server.address().port)))
END
      node server.mjs & server=$!; trap 'kill $server' EXIT
      until test -s port; do sleep 0.05; done
      cd app; echo '{"name":"app","version":"1.0.0"}' >package.json
      npm install --silent --registry "http://127.0.0.1:$(cat ../port)/" dep
      test "$(node -p 'require("dep")')" = 42; npm ci --silent --registry "http://127.0.0.1:$(cat ../port)/"`,
  },
  {
    title: 'node: workers, child processes, streams and the test runner',
    script: `
      cat >main.test.mjs <<'END'
import test from 'node:test'
import assert from 'node:assert'
import { Worker } from 'node:worker_threads'
import { execFile } from 'node:child_process'
import { promisify } from 'node:util'
import { watch, writeFileSync } from 'node:fs'
import { createServer, connect } from 'node:net'
import os from 'node:os'
test('worker', async () => {
  const worker = new Worker('require("worker_threads").parentPort.postMessage(6 * 7)', { eval: true })
  assert.equal(await new Promise((resolve) => worker.once('message', resolve)), 42)
})
test('child', async () => assert.equal((await promisify(execFile)('node', ['-p', '1+1'])).stdout, '2\\n'))
test('watch', async () => {
  writeFileSync('watched', 'a')
  const watcher = watch('watched')
  const seen = new Promise((resolve) => watcher.once('change', resolve))
  writeFileSync('watched', 'b')
  await seen
  watcher.close()
})
test('unix socket', async () => {
  const server = createServer((socket) => socket.end('hello')).listen('/tmp/compat.sock')
  const chunks = []
  for await (const chunk of connect('/tmp/compat.sock')) chunks.push(chunk)
  assert.equal(Buffer.concat(chunks).toString(), 'hello')
  server.close()
})
test('who', () => assert.equal(os.userInfo().username, 'user'))
END
      node --test main.test.mjs`,
  },
  {
    title: 'C: make in parallel, a library, and a program that forks and has threads',
    script: `
      cat >lib.c <<'END'
int twice(int n) { return 2 * n; }
END
      cat >main.c <<'END'
#include <assert.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>
int twice(int);
static sem_t done;
static void *work(void *p) { *(int *)p = twice(21); sem_post(&done); return p; }
int main(void)
{
    int value = 0, status;
    pthread_t t;
    sem_init(&done, 0, 0);
    assert(pthread_create(&t, 0, work, &value) == 0 && pthread_join(t, 0) == 0 && sem_wait(&done) == 0);
    if (fork() == 0) _exit(value);
    wait(&status);
    return WEXITSTATUS(status) == 42 ? 0 : 1;
}
END
      printf 'CFLAGS = -O2 -Wall -Werror -fPIC\\nall: main\\nliblib.so: lib.o\\n\\tgcc -shared -o $@ $^\\nmain: main.o liblib.so\\n\\tgcc -pthread -o $@ main.o -L. -llib -Wl,-rpath,.\\n' >Makefile
      make -sj4; ./main; touch lib.c; make -s; ./main; make -q`,
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

compatible('compatibility', WORK, 5, succeed)
