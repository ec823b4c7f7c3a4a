/**
 * Versions, packages, builds and tests as programmers make them: no case here may need a looser
 * sandbox than every person gets.
 */
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
    title: 'git: submodules, worktrees and shallow clones of file://, hooks, a bisection',
    script: `
      git init -q lib; (cd lib; for i in 1 2 3 4 5; do echo $i >n; git add n; git commit -qm $i; done)
      git init -q app; cd app; git -c protocol.file.allow=always submodule --quiet add "file://$PWD/../lib" lib; git commit -qm lib
      git worktree add -q -b side ../side; echo s >../side/s; git -C ../side add s; git -C ../side commit -qm s; git merge -q --no-edit side
      git worktree remove ../side; git -c protocol.file.allow=always clone -q --recurse-submodules "file://$PWD" ../copy; test "$(cat ../copy/lib/n)" = 5
      git clone -q --depth 1 "file://$PWD/../lib" ../shallow; test "$(git -C ../shallow rev-list --count HEAD)" = 1
      printf '#!/bin/sh\\necho hooked >../hooked\\n' >.git/hooks/pre-commit; chmod +x .git/hooks/pre-commit; git commit -q --allow-empty -m h; grep -q hooked ../hooked
      cd ../lib; git bisect start HEAD HEAD~4 >/dev/null; git bisect run sh -c 'test "$(cat n)" -lt 3' | grep 'is the first bad commit' >/dev/null`,
  },
  {
    title: 'python: asyncio with pipes and signals, a manager, queues and spawned workers',
    script: `
      cat >work.py <<'END'
import asyncio, multiprocessing as mp, os, signal, sys
def worker(jobs, done):
    for n in iter(jobs.get, None): done.put((n, n * n, os.getpid()))
async def main():
    cat = await asyncio.create_subprocess_exec('cat', stdin=-1, stdout=-1)
    out, _ = await cat.communicate(b'x' * 1_000_000); assert len(out) == 1_000_000
    many = await asyncio.gather(*(asyncio.create_subprocess_shell(f'exit {n}') for n in range(20)))
    assert [await p.wait() for p in many] == list(range(20))
    slow = await asyncio.create_subprocess_exec('sleep', '100'); slow.terminate(); assert await slow.wait() == -signal.SIGTERM
    try: await asyncio.wait_for(asyncio.sleep(100), 0.05); assert False
    except asyncio.TimeoutError: pass
    got = asyncio.Event(); asyncio.get_running_loop().add_signal_handler(signal.SIGUSR1, got.set)
    os.kill(os.getpid(), signal.SIGUSR1); await got.wait()
    server = await asyncio.start_server(lambda r, w: (w.write(b'hi'), w.close()), '127.0.0.1', 0)
    reader, _ = await asyncio.open_connection(*server.sockets[0].getsockname()); assert await reader.read() == b'hi'; server.close()
if __name__ == '__main__':
    mp.set_start_method('spawn'); jobs, done = mp.Queue(), mp.Queue()
    workers = [mp.Process(target=worker, args=(jobs, done)) for _ in range(2)]
    for w in workers: w.start()
    for n in range(30): jobs.put(n)
    for _ in workers: jobs.put(None)
    assert sorted(done.get()[:2] for _ in range(30)) == [(n, n * n) for n in range(30)]
    for w in workers: w.join(); assert w.exitcode == 0
    with mp.Manager() as manager: shared = manager.dict(a=1); shared['b'] = 2; assert dict(shared) == {'a': 1, 'b': 2}
    asyncio.run(main())
END
      python3 work.py; python3 -m unittest -q <<<'' 2>&1 | grep Ran >ran`,
  },
  {
    title: 'make: a parallel build of many files whose parts share their job slots',
    script: `
      for i in $(seq 60); do echo "int f$i(void) { return $i; }" >f$i.c; done
      { for i in $(seq 60); do echo "int f$i(void);"; done; echo 'int main(void) { return ('; seq 60 | sed 's/.*/f&() +/'; echo '0) == 1830 ? 0 : 1; }'; } >main.c
      mkdir sub; printf 'all: a b c\\n%%:\\n\\tsleep 0.05; touch $@\\n' >sub/Makefile
      printf 'OBJECTS = $(patsubst %%.c,%%.o,$(wildcard *.c))\\nall: program parts\\nprogram: $(OBJECTS)\\n\\t$(CC) -o $@ $^\\nparts:\\n\\t+$(MAKE) -s -C sub\\n.PHONY: parts\\n' >Makefile
      make -s -j8 2>complaints; test ! -s complaints; ./program; test -e sub/c; make -q program; if make -s -j4 nothing 2>/dev/null; then exit 1; fi`,
  },
  {
    title: 'npm: workspaces and a lock file without a network',
    script: `
      mkdir -p packages/one packages/two; echo '{"private":true,"workspaces":["packages/*"]}' >package.json
      echo '{"name":"one","version":"1.0.0","main":"m.js","scripts":{"test":"node -e 0"}}' >packages/one/package.json; echo 'module.exports = 1' >packages/one/m.js
      echo '{"name":"two","version":"1.0.0","dependencies":{"one":"^1.0.0"},"scripts":{"test":"node -p \\"require(\\u0027one\\u0027)\\""}}' >packages/two/package.json
      npm install --silent --offline; test -L node_modules/one; npm test --silent --workspaces | grep -qx 1; npm ci --silent --offline; npm ls --silent --all
      code=0; npm install --silent --offline left-pad 2>said || code=$?; test $code != 0`,
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
]

compatible('programming', WORK, 3, succeed)
