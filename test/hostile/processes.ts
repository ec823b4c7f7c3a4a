/** Class R: processes, as many as there may be, and those that do not end. */
import { randomBytes } from 'node:crypto'

import { expect } from 'vitest'

import { SandboxError } from '../../packages/sandbox/src/errors.ts'
import { extent } from '../campaign.ts'
import { begun, noStrangers, type Row, worksAgain } from './row.ts'

const DEAF = '$SIG{$_} = "IGNORE" for grep { !/KILL|STOP|CHLD/ } keys %SIG'

/** Ways to have as many processes as there may be. All of them go on until they are killed. */
const BOMBS: Record<string, string> = {
  'the classic of the shell': 'b() { b | b & }; b; sleep 300',
  'a loop of perl that ignores signals': `perl -e '${DEAF}; fork while 1'`,
  'a loop that leaves its session each time': `perl -MPOSIX=setsid -e '${DEAF}; while (1) { fork; setsid() }'`,
  'threads that start threads': `python3 -c '
import threading, time, signal
signal.signal(signal.SIGTERM, signal.SIG_IGN)
def more():
  while True:
    try: threading.Thread(target=more, daemon=True).start()
    except Exception: time.sleep(0.01)
more()'`,
  'children that kill their parent': `perl -e '${DEAF}; while (1) { my $p = $$; if (!fork) { kill 9, $p if rand() < 0.5 } }' & sleep 300`,
}

/** Ended by its limit with nothing left, and the next command works without a new container. */
function cleared(what: string, bomb: string): Row {
  return {
    id: 'R01',
    what: `${what}: cleared at the time limit, the next command works in the same container`,
    heavy: true,
    async run({ me, sandbox }) {
      const boot = (await sandbox()).bootId
      // Every shape but one waits for its end; what has killed its own parent may have ended before.
      const result = await me.shell(`exec 2>/dev/null; ${bomb}`, { timeoutMs: 1_500 })
      expect(
        result.status === 'completed' || result.reason === 'timeout' || result.reason === 'interrupted',
      ).toBe(true)
      await worksAgain(me)
      expect((await sandbox()).bootId).toBe(boot)
    },
  }
}

export const rows: Row[] = [
  ...Object.entries(BOMBS).map(([what, bomb]) => cleared(what, bomb)),
  {
    id: 'R01',
    what: 'cancelled in the middle, a bomb is gone as well',
    heavy: true,
    async run({ me }) {
      const result = await me.shell(
        `exec 2>/dev/null; echo on; sleep 0.5; ${BOMBS['the classic of the shell'] ?? ''}`,
        {
          timeoutMs: 30_000,
          onOutput: (cancel) => void setTimeout(cancel, 1_500),
        },
      )
      expect(result).toMatchObject({ status: 'failed', reason: 'cancelled' })
    },
  },
  {
    id: 'R02',
    what: 'a bomb, then a new command at once: pids_exhausted, and a reset that works',
    heavy: true,
    async run({ me, controller }) {
      const bomb = await begun(
        me,
        `exec perl -e '${DEAF}; $| = 1; while (1) { my $p = fork; if (!defined $p) { print "full\n"; sleep 300 while 1 } if (!$p) { sleep 300 while 1 } }'`,
      )
      expect(await me.shell('true')).toMatchObject({ status: 'failed', reason: 'pids_exhausted' })
      await controller.reset('attacker')
      expect((await bomb.ended).status).toBe('failed')
      await worksAgain(me)
    },
  },
  {
    id: 'R07',
    what: '64 loops without end: they have their own quota, the neighbour works',
    heavy: true,
    async run({ me }) {
      const result = await me.shell('for i in {1..64}; do while :; do :; done & done; wait', {
        timeoutMs: extent(2_000, 10_000),
      })
      expect(result.reason).toBe('timeout')
    },
  },
  {
    id: 'R13',
    what: 'a neighbour with few processes allowed to its uid still starts, whatever runs here',
    async run({ me, neighbour }) {
      const many = await begun(me, 'for i in {1..200}; do sleep 300 & done; echo on; wait')
      const { output } = await neighbour.shell(
        'ulimit -u 30; for i in {1..10}; do sleep 0.1 & done; wait; echo started',
      )
      many.cancel()
      await many.ended
      expect(output).toBe('started\n')
    },
  },
  ...[
    'setsid nohup sleep 9999 >/dev/null 2>&1 & disown',
    '(setsid sh -c "(sleep 9999 &) & exit" &) ; (sleep 9999 &)',
    `perl -MPOSIX=setsid -e 'for (1 .. 3) { exit if fork; setsid() } $0 = "sbxd"; sleep 9999'`,
    'exec -a sbxd sleep 9999 & (exec -a /usr/bin/sbxd sleep 9999) & disown -a',
    'systemd-run --user sleep 9999; echo sleep 9999 | at now; echo "* * * * * sleep 9999" | crontab -; true',
    'coproc sleep 9999; exec 3>&-; sleep 9999 | sleep 9999 & true',
  ].map((command): Row => ({
    id: 'R23',
    what: `none is left after: ${command.slice(0, 60)}`,
    async run({ me }) {
      const { status } = await me.shell(command, { timeoutMs: 30_000 })
      expect(status).toBe('completed')
      await noStrangers(me)
    },
  })),
  {
    id: 'R23',
    what: 'none is left of processes whose names look like lines of /proc, or that have a subreaper and a will of their own',
    async run({ me }) {
      const names = [') S 0 0 0', 'a) R 1 1 1 (', ')'.repeat(15), '\\n\\n) Z 1', 'sbxd) S 1 1']
      const list = names.map((name) => `"${name}"`).join(', ')
      // Each says when it has its name; 157 is prctl.
      const named = await me.shell(
        `perl -MPOSIX -e 'pipe(R, W) or die; for my $n (${list}) { defined(my $p = fork) or die $!; if (!$p) { syscall(157, 15, my $x = $n) == 0 or die $!; setpgrp; syswrite W, "x"; sleep 9999 } } for (${list}) { sysread(R, my $x, 1) or die } print "named"'`,
      )
      expect(named).toMatchObject({ status: 'completed', output: 'named' })
      const own = `perl -MPOSIX -e 'syscall(157, 36, 1, 0, 0, 0) == 0 or die $!; for (1 .. 20) { if (!fork) { setsid(); if (!fork) { $SIG{TERM} = "IGNORE"; sleep 9999 } exit } } sleep 9999'`
      expect((await me.shell(own, { timeoutMs: 1_000 })).reason).toBe('timeout')
      await noStrangers(me)
    },
    skip: (stage) => (stage.architecture === 'x86_64' ? undefined : 'the numbers are those of x86-64'),
  },
  ...[
    'mkfifo p; cat p',
    'read -r line < /dev/tty || sleep 300',
    'trap "" TERM HUP INT; while :; do sleep 300; done',
    'kill -STOP $$',
    `exec perl -e '${DEAF}; vfork() if 0; sleep 300 while 1'`,
  ].map((command): Row => ({
    id: 'R24',
    what: `ended at its limit: ${command.slice(0, 60)}`,
    async run({ me }) {
      const result = await me.shell(command, { timeoutMs: 1_000 })
      await me.shell('rm -f p')
      expect(result.reason).toBe('timeout')
      // After the limit come TERM and the grace of a second; the rest is for a loaded machine. Unended it takes 300 s.
      expect(result.durationMs).toBeLessThan(30_000)
    },
  })),
  {
    id: 'R24',
    what: 'an ordinary command is ended within 500 ms after its limit, in the best of ten tries (the table: 50 ms)',
    async run({ sandbox }) {
      const box = await sandbox()
      const durations: number[] = []
      // Ten times 50 ms, and some tries for a loaded machine.
      while (durations.length < 10 && !durations.some((ms) => ms < 1_500)) {
        const running = await box.run({
          id: randomBytes(16).toString('hex'),
          command: ['sleep', '300'],
          timeoutMs: 1_000,
          autoAcknowledge: true,
        })
        for await (const _ of running.output) throw new Error('sleep printed something')
        const { cause, durationMs } = await running.exit
        expect(cause).toBe('timeout')
        durations.push(durationMs)
      }
      expect(Math.min(...durations)).toBeGreaterThanOrEqual(999)
      expect(Math.min(...durations)).toBeLessThan(1_500)
    },
  },
  {
    id: 'X-R11',
    what: 'a reset again and again while commands begin and files are written: each ends with a word, and all works after',
    async run({ me, sandbox, controller }) {
      const box = await sandbox()
      const state = { over: false }
      const said = new Set<string>()
      const note = (error: unknown): unknown =>
        said.add(error instanceof SandboxError ? error.code : String(error))
      const again = async (work: () => Promise<unknown>): Promise<void> => {
        while (!state.over) await work().catch(note)
      }
      // A reset takes longer while it kills many processes, so that others begin during it.
      const crowd = 'for i in {1..100}; do sleep 300 & done; wait'
      const [short, shorter] = ['sleep 0.05; echo on', 'echo on']
      const going = [crowd, short, short, shorter, shorter, shorter].map((command) =>
        again(async () => {
          const id = randomBytes(16).toString('hex')
          const running = await box.run({ id, command, autoAcknowledge: true })
          for await (const { data } of running.output) expect(data.length).toBe(3)
          expect(['exited', 'cancel']).toContain((await running.exit).cause)
        }),
      )
      going.push(again(() => box.files.write('again', Buffer.alloc(100_000))))
      // Two at a time: who asks while one is under way gets an answer as well.
      const reset = (): Promise<unknown> => controller.reset('attacker').catch(note)
      for (let i = 0; i < 10; i += 1) await Promise.all([reset(), reset()])
      state.over = true
      await controller.reset('attacker')
      await Promise.all(going)
      for (const word of said) expect(word).toMatch(/^(cancelled|limit_reached|pids_exhausted)$/)
      expect((await me.shell('wc -c <again; rm again')).output).toBe('100000\n')
    },
  },
  {
    id: 'R27',
    what: 'a thousand commands at once: a limit with a typed error, all others run',
    heavy: true,
    async run({ sandbox, neighbour }) {
      const box = await sandbox()
      const runs = await Promise.allSettled(
        Array.from({ length: extent(400, 1_000) }, async () => {
          const running = await box.run({
            id: randomBytes(16).toString('hex'),
            command: ['sleep', '2'],
            autoAcknowledge: true,
          })
          for await (const _ of running.output) throw new Error('sleep printed something')
          return (await running.exit).code
        }),
      )
      const ran = runs.filter((run) => run.status === 'fulfilled')
      const refused = runs.flatMap((run) => (run.status === 'rejected' ? [run.reason as unknown] : []))
      expect(ran.length).toBeGreaterThan(10)
      expect(new Set(ran.map((run) => run.value))).toEqual(new Set([0]))
      expect(refused.length).toBeGreaterThan(0)
      for (const reason of refused) {
        expect(reason).toBeInstanceOf(SandboxError)
        expect((reason as SandboxError).code).toMatch(/^(limit_reached|pids_exhausted)$/)
      }
      expect((await neighbour.shell('echo fine')).output).toBe('fine\n')
    },
  },
]
