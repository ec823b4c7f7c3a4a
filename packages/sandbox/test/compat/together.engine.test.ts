/**
 * Honest work in several commands of one sandbox at once: they see each other's files, sockets,
 * locks and signals.
 */
import { expect } from 'vitest'

import type { Sandbox } from '../../src/sandbox.ts'
import { finish, newId, sh } from '../contract/harness.ts'
import { compatible } from './box.ts'

interface Together {
  title: string
  /** Runs as a job until it has been used. */
  job: string
  /** Shell text of other commands, one after the other; each succeeds. */
  commands: readonly string[]
  /** Final output of the job. */
  printed: string
}

/** Waits for a file that somebody else writes. */
const UNTIL = 'until_there() { until test -e "$1"; do sleep 0.05; done; }; '

const WORK: readonly Together[] = [
  {
    title: 'a server on a loopback port, asked by others and stopped by one',
    job: `mkdir -p site; echo hello >site/page; exec python3 -u -c '
import functools, http.server
class Handler(http.server.SimpleHTTPRequestHandler):
  def log_message(self, *_): pass
  def do_POST(self): self.send_response(204); self.end_headers(); self.server.over = True
server = http.server.HTTPServer(("127.0.0.1", 0), functools.partial(Handler, directory="site")); server.over = False
open("port.new", "w").write(str(server.server_port)); import os; os.rename("port.new", "port")
while not server.over: server.handle_request()
print("stopped")'`,
    commands: [
      `${UNTIL} until_there port; test "$(curl -sS "http://127.0.0.1:$(cat port)/page")" = hello`,
      'for i in 1 2 3 4 5; do curl -sS "http://127.0.0.1:$(cat port)/page"; done | sort | uniq -c | grep -q "5 hello"',
      'curl -sS -X POST "http://127.0.0.1:$(cat port)/stop"; rm -r port site',
    ],
    printed: 'stopped\n',
  },
  {
    title: 'a Unix socket and a pipe with a name between commands',
    job: `rm -f line talk.sock; mkfifo line; exec python3 -c '
import socket
server = socket.socket(socket.AF_UNIX); server.bind("talk.sock"); server.listen()
for line in open("line"): print("line", line.strip(), flush=True)
peer, _ = server.accept(); print("socket", peer.recv(100).decode(), flush=True); peer.sendall(b"bye")'`,
    commands: [
      `${UNTIL} until_there talk.sock; printf 'one\\ntwo\\n' >line`,
      `python3 -c 'import socket; s = socket.socket(socket.AF_UNIX); s.connect("talk.sock"); s.sendall(b"hi"); assert s.recv(9) == b"bye"'; rm line talk.sock`,
    ],
    printed: 'line one\nline two\nsocket hi\n',
  },
  {
    title: 'a lock that another command holds, and a signal that makes it let go',
    job: `exec 9>held; flock 9; echo $$ >holder.new; trap 'echo asked; flock -u 9; exit 0' USR1; mv holder.new holder; while :; do sleep 0.05; done`,
    commands: [
      `${UNTIL} until_there holder; if flock -n held true; then exit 1; fi; ps -o pid= -p "$(cat holder)"`,
      'kill -USR1 "$(cat holder)"; flock -w 60 held echo free; rm held holder',
    ],
    printed: 'asked\n',
  },
  {
    title: 'a database in write-ahead mode, written by one and read by others',
    job: `rm -f w.db*; sqlite3 w.db 'pragma journal_mode=wal; create table t(n)' >/dev/null; touch made; i=0
until test -e enough; do sqlite3 -cmd '.timeout 20000' w.db "insert into t values ($((i += 1)))"; done; rm enough; echo written`,
    commands: [
      `${UNTIL} until_there made; until test "$(sqlite3 -cmd '.timeout 20000' w.db 'select count(*) from t')" -gt 3; do sleep 0.05; done`,
      `sqlite3 -cmd '.timeout 20000' w.db 'insert into t values (-1); select min(n) from t' | grep -qx -- -1; touch enough`,
      `while test -e enough; do sleep 0.05; done; sqlite3 w.db 'pragma integrity_check' | grep -qx ok; rm made`,
    ],
    printed: 'written\n',
  },
  {
    title: 'a log that is followed while another command writes it',
    job: `: >log; touch following; timeout 100 tail -n +1 -f log | { while read -r line; do echo "saw $line"; if [ "$line" = end ]; then break; fi; done; pkill -P $$ tail; }`,
    commands: [
      `${UNTIL} until_there following; for i in 1 2 3; do echo $i >>log; sleep 0.05; done; echo end >>log; rm following`,
    ],
    printed: 'saw 1\nsaw 2\nsaw 3\nsaw end\n',
  },
]

async function check(sandbox: Sandbox, { job, commands, printed }: Together): Promise<void> {
  const running = await sandbox.run({ id: newId(), command: job, background: true, autoAcknowledge: true })
  for (const command of commands) {
    const { code, out, err } = await sh(sandbox, `set -euo pipefail; ${command}`, { timeoutMs: 90_000 })
    expect({ command, code, said: code === 0 ? '' : out + err }).toEqual({ command, code: 0, said: '' })
  }
  expect((await finish(running)).out).toBe(printed)
}

compatible('several commands', WORK, 2, check)
