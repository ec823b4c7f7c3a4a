/** Class P: what a command does to its own end of what the supervisor holds: its output, its terminal, its session. */
import { randomBytes } from 'node:crypto'

import { expect } from 'vitest'

import type { CommandExit, RunningCommand, RunRequest, Sandbox } from '../../packages/sandbox/src/sandbox.ts'
import type { Row } from './row.ts'

/** Runs a command to its end. `use` runs at the same time; `begun` is the first output, or the end without any. */
async function play(
  box: Sandbox,
  request: Omit<RunRequest, 'id'>,
  use: (running: RunningCommand, begun: Promise<void>) => Promise<void> = async () => {},
): Promise<CommandExit & { out: string; err: string }> {
  const id = randomBytes(16).toString('hex')
  const running = await box.run({ timeoutMs: 60_000, autoAcknowledge: true, ...request, id })
  const begun = Promise.withResolvers<void>()
  const using = use(running, begun.promise)
  const parts: Record<'stdout' | 'stderr', Uint8Array[]> = { stdout: [], stderr: [] }
  for await (const { stream, data } of running.output) {
    parts[stream].push(data)
    begun.resolve()
  }
  begun.resolve()
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

/** Command that creates an obstacle, and the kind of file in its place afterwards. */
const PLACES = [
  ['mkfifo .tool-outputs/.sessions', 'regular file'],
  ['mkdir -p .tool-outputs/.sessions/x', 'directory'],
  ['ln -s /dev/zero .tool-outputs/.sessions', 'regular file'],
  ['truncate -s 900M .tool-outputs/.sessions', 'regular file'],
  ['rmdir .tool-outputs; echo file >.tool-outputs', ''],
  ['rmdir .tool-outputs; ln -s /tmp .tool-outputs', ''],
  ['rmdir .tool-outputs; mkfifo .tool-outputs', ''],
  ['chmod 0 .tool-outputs', 'regular file'],
] as const

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
      // TIOCEXCL: nobody opens it any more; what is open stays, so that it still gets its sizes.
      const keeping =
        '$| = 1; ioctl(STDIN, 0x540c, 0) or die; print "kept"; <STDIN>; system "stty size"; exit 6'
      const exclusive = await play(
        box,
        { command: ['perl', '-e', keeping], terminal, stdin: true },
        async (running, begun) => {
          await begun
          await running.resize({ rows: 3, columns: 5 })
          await running.writeStdin(Buffer.from('on\n'))
        },
      )
      expect(exclusive).toMatchObject({ cause: 'exited', code: 6, out: expect.stringContaining('3 5') })
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
      // Same open files as in every shell: the session's own memory file has no reachable number.
      const open = { command: 'cd /proc/$$/fd; echo *' }
      expect((await play(box, { ...open, session })).out).toBe((await play(box, open)).out)
      await play(box, { command: 'cd', session })
      for (const [command, where] of [
        [
          'for f in /proc/$$/fd/*; do n=${f##*/}; if [ "$n" -gt 2 ]; then head -c 300000 /dev/urandom >&"$n"; fi; done 2>/dev/null; cd /',
          '/',
        ],
        // It ends before it could say where it is.
        ['cd /run; kill -9 $$', '/'],
        ['for n in {3..255}; do eval "exec $n>&-"; done; cd /tmp', '/tmp'],
        ["cd; echo 'echo again' >again; export BASH_ENV=$PWD/again", '/workspace'],
        ['cd /run; export SHELLOPTS; set -o noexec', '/run'],
        ["cd; trap 'echo again' DEBUG; export PATH=. IFS=/ POSIXLY_CORRECT=1; set -o posix", '/workspace'],
      ] as const) {
        expect((await play(box, { command, session })).cause, command).toMatch(/exited|signal/)
        expect(await play(box, { command: 'echo alive; pwd', session }), command).toMatchObject({
          code: 0,
          out: `alive\n${where}\n`,
        })
      }
      await play(box, { command: 'rm again' })
    },
  },
  {
    id: 'X-P8',
    what: 'something else in the place of the file for sessions and the folder for outputs: both go on without',
    async run({ sandbox, me }) {
      const box = await sandbox()
      // Ignores files of earlier rows.
      const { output: before } = await me.shell('find /tmp -mindepth 1 | wc -l')
      for (const [place, after] of PLACES) {
        // One that is new, so that it is written each time.
        const session = randomBytes(4).toString('hex')
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
        // One process writes sessions and answers file requests in order, so the write has ended by now.
        expect(await box.files.stat(''), place).toMatchObject({ kind: 'directory' })
        const { output: there } = await me.shell('stat -c %F .tool-outputs/.sessions 2>/dev/null')
        expect(there.trim(), place).toBe(after)
        const { output } = await me.shell(
          'find /tmp -mindepth 1 | wc -l; chmod -f 700 .tool-outputs; rm -rf .tool-outputs',
        )
        expect(output, place).toBe(before)
      }
    },
  },
]
