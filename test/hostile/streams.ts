/** Class P: what a command does to its own end of what the supervisor holds: its output, its terminal, its session. */
import { randomBytes } from 'node:crypto'

import { expect } from 'vitest'

import type { CommandExit, RunningCommand, RunRequest, Sandbox } from '../../packages/sandbox/src/sandbox.ts'
import type { Row } from './row.ts'

/** To its end, with everything that it printed. `use` goes on meanwhile. */
async function play(
  box: Sandbox,
  request: Omit<RunRequest, 'id'>,
  use: (running: RunningCommand) => Promise<void> = async () => {},
): Promise<CommandExit & { out: string; err: string }> {
  const id = randomBytes(16).toString('hex')
  const running = await box.run({ timeoutMs: 60_000, autoAcknowledge: true, ...request, id })
  const using = use(running)
  const parts: Record<'stdout' | 'stderr', Uint8Array[]> = { stdout: [], stderr: [] }
  for await (const { stream, data } of running.output) parts[stream].push(data)
  await using
  const [out, err] = [parts.stdout, parts.stderr].map((pieces) => Buffer.concat(pieces).toString('latin1'))
  return { ...(await running.exit), out: out ?? '', err: err ?? '' }
}

/** One page, then no waiting: as much as each write took is what arrives. */
const OWN_PIPE = `
import fcntl, os
flags = fcntl.fcntl(1, fcntl.F_GETFL)
fcntl.fcntl(1, fcntl.F_SETPIPE_SZ, 4096)
wrote = sum(os.write(1, b"x" * 1000) for _ in range(3000))
fcntl.fcntl(1, fcntl.F_SETFL, flags | os.O_NONBLOCK | os.O_ASYNC)
for _ in range(3000):
  try: wrote += os.write(1, b"y" * 1000)
  except BlockingIOError: pass
os.write(2, str(wrote).encode())`

const PLACES = [
  'mkfifo .tool-outputs/.sessions',
  'mkdir -p .tool-outputs/.sessions/x',
  'ln -s /dev/zero .tool-outputs/.sessions',
  'truncate -s 900M .tool-outputs/.sessions',
  'rmdir .tool-outputs; echo file >.tool-outputs',
  'rmdir .tool-outputs; ln -s /tmp .tool-outputs',
  'rmdir .tool-outputs; mkfifo .tool-outputs',
  'chmod 0 .tool-outputs',
]

export const rows: Row[] = [
  {
    id: 'X-P5',
    what: 'its own pipe made small and without waiting: the bytes that were taken arrive, and are counted',
    async run({ sandbox }) {
      const { code, out, err, bytes } = await play(await sandbox(), { command: ['python3', '-c', OWN_PIPE] })
      expect({ code, length: out.length, counted: bytes.stdout }).toEqual({
        code: 0,
        length: Number(err),
        counted: Number(err),
      })
      expect(out.length).toBeGreaterThan(3_000_000)
    },
  },
  {
    id: 'X-P6',
    what: 'its terminal: a storm of sizes, kept for itself, output stopped, a shell that stops itself',
    async run({ sandbox }) {
      const box = await sandbox()
      const terminal = { rows: 24, columns: 80 }
      const storm = await play(
        box,
        { command: 'trap : WINCH; read -r line; stty size; exit 4', terminal, stdin: true },
        async (running) => {
          for (let i = 1; i <= 1_000; i += 1) await running.resize({ rows: i, columns: 65_535 - i })
          await running.writeStdin(Buffer.from('on\n'))
        },
      )
      expect(storm).toMatchObject({ code: 4, out: expect.stringContaining('1000 64535') })
      // TIOCEXCL: nobody opens it any more; what is open stays.
      const exclusive = await play(
        box,
        { command: ['perl', '-e', 'ioctl(STDIN, 0x540c, 0); <STDIN>; exit 6'], terminal, stdin: true },
        async (running) => {
          await running.resize({ rows: 3, columns: 3 })
          await running.writeStdin(Buffer.from('on\n'))
        },
      )
      expect(exclusive).toMatchObject({ cause: 'exited', code: 6 })
      const stopped = `perl -MPOSIX -e 'tcflow(1, TCOOFF); print "never\\n" x 100000'`
      expect(await play(box, { command: stopped, terminal, timeoutMs: 1_000 })).toMatchObject({
        cause: 'timeout',
      })
      const itself = await play(box, { command: 'echo on; kill -STOP $$', terminal }, (running) =>
        running.cancel(200),
      )
      expect(itself).toMatchObject({ cause: 'cancel' })
    },
  },
  {
    id: 'X-P7',
    what: 'noise into every descriptor of a session’s shell, and all of them closed: the next command works',
    async run({ sandbox }) {
      const box = await sandbox()
      const session = randomBytes(4).toString('hex')
      for (const command of [
        'for f in /proc/$$/fd/*; do n=${f##*/}; if [ "$n" -gt 2 ]; then head -c 300000 /dev/urandom >&"$n"; fi; done 2>/dev/null; true',
        'for n in {3..255}; do eval "exec $n>&-"; done; cd /tmp',
        "readonly BASH_ENV=x; trap 'echo again' DEBUG; export PATH=. IFS=/ POSIXLY_CORRECT=1; set -o posix; cd ~",
      ]) {
        expect((await play(box, { command, session })).cause).toBe('exited')
        expect(await play(box, { command: 'echo alive', session })).toMatchObject({ code: 0, out: 'alive\n' })
      }
    },
  },
  {
    id: 'X-P8',
    what: 'something else in the place of the file for sessions and the folder for outputs: both go on without',
    async run({ sandbox, me }) {
      const box = await sandbox()
      const session = randomBytes(4).toString('hex')
      // What earlier rows left there is not looked at.
      const { output: before } = await me.shell('find /tmp -mindepth 1 | wc -l')
      for (const place of PLACES) {
        await me.shell(`rm -rf .tool-outputs; mkdir .tool-outputs; ${place}`)
        await play(box, { command: 'cd /tmp; export MARK=kept', session })
        expect(await play(box, { command: 'pwd; echo $MARK', session }), place).toMatchObject({
          out: '/tmp\nkept\n',
        })
        const spool = { afterBytes: 1_000, maxBytes: 1_000_000 }
        const long = await play(box, { command: 'seq 20000', spool })
        expect({ place, code: long.code, length: long.out.length }).toEqual({
          place,
          code: 0,
          length: 108_894,
        })
        const { output } = await me.shell(
          'find /tmp -mindepth 1 | wc -l; chmod -f 700 .tool-outputs; rm -rf .tool-outputs',
        )
        expect(output, place).toBe(before)
      }
    },
  },
]
