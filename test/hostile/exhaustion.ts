/** Class R: using up what is shared, within one sandbox and with its neighbours. */
import { randomBytes } from 'node:crypto'
import { readdir } from 'node:fs/promises'
import { join } from 'node:path'

import { expect } from 'vitest'

import { SandboxError } from '../../packages/sandbox/src/errors.ts'
import type { Sandbox } from '../../packages/sandbox/src/sandbox.ts'
import { docker, shell } from '../../packages/sandbox/test/docker-fixture.ts'
import { extent } from '../campaign.ts'
import { all, begun, closed, EPERM, prints, type Row, systemCalls, worksAgain } from './row.ts'
import { hostText, STAGE_LIMITS } from './stage.ts'

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

/** A command that runs out of memory: killed inside, said so, and the next one has all of it again. */
function outOfMemory(what: string, command: string): Row {
  return {
    id: 'R04',
    what: `${what}: killed inside, the call says out_of_memory, process 1 lives`,
    heavy: true,
    async run({ me, sandbox }) {
      const boot = (await sandbox()).bootId
      const result = await me.shell(command, { timeoutMs: 60_000 })
      expect(result).toMatchObject({ status: 'failed', reason: 'out_of_memory' })
      expect((await me.shell(`perl -e 'my $x = "a" x (200 * 1024 * 1024); print length $x'`)).output).toBe(
        '209715200',
      )
      expect((await sandbox()).bootId).toBe(boot)
    },
  }
}

/** Starts `command`, waits for its first output, cancels it; milliseconds from the cancel to the end. */
async function cancelTime(sandbox: Sandbox, command: string): Promise<number> {
  const running = await sandbox.run({
    id: randomBytes(16).toString('hex'),
    command,
    merge: true,
    autoAcknowledge: true,
  })
  let from = 0
  for await (const _ of running.output) {
    if (from !== 0) continue
    from = performance.now()
    await running.cancel(0)
  }
  expect((await running.exit).cause).toBe('cancel')
  return performance.now() - from
}

/** Ticks of processor time that a whole sandbox has used, from the supervisor's and its commands' own counts. */
async function ticks(sandbox: Sandbox): Promise<number> {
  const { output } = await shell(
    sandbox,
    `cat /proc/[0-9]*/stat 2>/dev/null | awk '{ sub(/.*\\) /, ""); n += $12 + $13 } END { print n }'`,
  )
  return Number(output.trim())
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
  outOfMemory('one large string', `exec perl -e '$x = "a" x (1 << 33)'`),
  outOfMemory(
    'many middle-sized processes',
    `for i in 1 2 3 4 5 6 7 8; do perl -e '$x = "a" x (600 << 20); sleep 60' & done; wait -n; exit $?`,
  ),
  outOfMemory('a line without end', 'exec tail /dev/zero'),
  outOfMemory(
    'anonymous files',
    `exec perl -e 'while (1) { my $f = syscall(319, my $n = "x", 0); open(my $o, ">&=", $f); push @keep, $o; syswrite($o, "a" x (64 << 20)) }'`,
  ),
  {
    id: 'R05',
    what: 'a full /tmp: ENOSPC at its size, and commands still run',
    async run({ me }) {
      const { output } = await me.shell('head -c 2G /dev/zero > /tmp/full; stat -c %s /tmp/full')
      expect(output).toMatch(/No space left/)
      expect(Number(output.trim().split('\n').at(-1))).toBe(STAGE_LIMITS.tmpBytes)
      expect((await me.shell('seq 1000 | sort -rn | tail -1; rm /tmp/full')).output).toBe('1\n')
    },
  },
  {
    id: 'R05',
    what: 'no more files in /tmp: ENOSPC, and commands still run',
    heavy: true,
    async run({ me }) {
      const { output } = await me.shell(
        `mkdir /tmp/many; perl -e 'my $n = 0; $n++ while $n < 200000 && open(my $f, ">", "/tmp/many/$n"); print "$n $!"'; echo; bash -c 'echo still'; rm -rf /tmp/many`,
      )
      expect(output).toMatch(/^3\d{4} No space left on device\nstill\n$/)
    },
  },
  {
    id: 'R06',
    what: 'tmpfs, shm and locked memory full, then heap: the command dies, reset empties /tmp',
    heavy: true,
    async run({ me, controller, sandbox }) {
      await me.shell(
        'head -c 1G /dev/zero > /tmp/a; head -c 1G /dev/zero > /dev/shm/b; head -c 1G /dev/zero > /run/c; true',
      )
      const result = await me.shell(`exec perl -e '$x = "a" x (1 << 33)'`, { timeoutMs: 60_000 })
      expect(result).toMatchObject({ status: 'failed', reason: 'out_of_memory' })
      // What cannot be freed by a kill is at most a quarter of the memory.
      expect((await me.shell(`perl -e 'my $x = "a" x (300 << 20); print length $x'`)).output).toBe(
        '314572800',
      )
      const boot = (await sandbox()).bootId
      await controller.reset('attacker')
      expect((await me.shell('ls -A /tmp /dev/shm /run | grep -v :')).output.trim()).toBe('')
      expect((await sandbox()).bootId).toBe(boot)
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
  prints(
    'R08',
    'limits of one process, which it cannot raise',
    'ulimit -Hn; ulimit -Hc; ulimit -Hl; ulimit -Hi; ulimit -Hq; ulimit -n 5000 2>/dev/null || echo no; ulimit -c 1 2>/dev/null || echo no',
    '4096\n0\n64\n1024\n262144\nno\nno',
  ),
  {
    id: 'R09',
    what: 'fallocate, truncate and sparse writes beyond the limit of one file are refused',
    async run({ me }) {
      const { output } = await me.shell(
        'fallocate -l 1T f; truncate -s 8E g; truncate -s 5G g; dd if=/dev/zero of=h bs=1 count=1 seek=1T; ls -s f g h; rm -f f g h',
      )
      expect(output.match(/File too large|File size limit|No space|Invalid/g)?.length).toBeGreaterThanOrEqual(
        3,
      )
    },
  },
  {
    id: 'R09',
    what: 'the file tool does not read a sparse giant whole',
    async run({ me }) {
      await me.shell('truncate -s 3G giant')
      const result = await me.call('read_file', { path: 'giant' })
      expect(result.status).toBe('failed')
      expect(result.forModel.length).toBeLessThan(2_000)
      await me.shell('rm giant')
    },
  },
  {
    id: 'R10',
    what: 'every inotify instance of a uid used up: the neighbour follows a file all the same',
    async run({ me, neighbour }) {
      const hog = await begun(
        me,
        `exec perl -e '$| = 1; my $n = 0; $n++ while $n < 4000 && syscall(294, 0) >= 0; print "$n $!\n"; sleep 300'`,
      )
      const { output } = await neighbour.shell(
        'echo first > log; (sleep 0.3; echo second >> log; sleep 0.3) & timeout 20 tail -n +1 -s 0.1 -f log --pid $!; rm log',
      )
      hog.cancel()
      expect((await hog.ended).output).toMatch(/^\d+ Too many open files/)
      expect(output).toBe('first\nsecond\n')
    },
  },
  {
    id: 'R12',
    what: 'the queues of signals, messages, semaphores and shared memory end at their limits; the neighbour’s are its own',
    async run({ me, neighbour }) {
      const fill = `perl -e 'my ($m, $o, $i) = (pack("Q", ~0), pack("Q", 0), pack("iiiiii", 35, 0, -1, 0, 0, 0) . "\\0" x 104); syscall(14, 0, $m, $o, 8); my $me = $$; my $n = 0; $n++ while $n < 100000 && syscall(129, $me, 35, $i) == 0; print "signals $n\\n"; $n = 0; while ($n < 1000) { my $name = "/q$n"; my $a = pack("qqqqqqqq", 0, 10, 8192, 0, 0, 0, 0, 0); last if syscall(240, "q$n", 0102, 0600, $a) < 0; $n++ } print "queues $n\\n"; unlink glob "/dev/mqueue/*"; syscall(240 + 1, "q$_") for 0 .. $n; $n = 0; $n++ while $n < 100000 && syscall(68, 0, 0600) >= 0; print "msg $n\\n"; $n = 0; $n++ while $n < 100000 && syscall(64, 0, 250, 0600) >= 0; print "sem $n\\n"; $n = 0; $n++ while $n < 100000 && syscall(29, 0, 1 << 20, 0600) >= 0; print "shm $n\\n"'`
      const { output } = await me.shell(fill)
      const counts = Object.fromEntries(
        output
          .trim()
          .split('\n')
          .map((line) => line.split(' ')),
      ) as Record<string, string>
      expect(Number(counts['signals'])).toBeLessThanOrEqual(1024)
      expect(Number(counts['queues'])).toBeLessThanOrEqual(16)
      expect(Number(counts['msg'])).toBeLessThanOrEqual(64)
      expect(Number(counts['sem'])).toBeLessThanOrEqual(256)
      expect(Number(counts['shm'])).toBeLessThanOrEqual(64)
      const theirs = await neighbour.shell(
        'ipcs -a | grep -c 0x; ipcmk -Q >/dev/null && ipcmk -M 4096 >/dev/null && ipcmk -S 1 >/dev/null && echo works; ipcrm -a',
      )
      expect(theirs.output).toBe('0\nworks\n')
      await me.shell('ipcrm -a')
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
  {
    id: 'R18',
    what: 'nothing gets to process 1’s stdout, and the engine keeps no log',
    async run({ me, sandbox, engineFolder }) {
      await me.shell(
        'head -c 64M /dev/zero; echo x > /proc/1/fd/1; echo x > /proc/1/fd/2; echo x > /dev/console',
      )
      const { id } = await sandbox()
      expect(await docker('inspect', '-f', '{{.HostConfig.LogConfig.Type}} {{.LogPath}}', id)).toBe('none')
      if (engineFolder === undefined) return
      const names = await readdir(join(engineFolder, 'containers', id))
      expect(names.filter((name) => name.includes('log'))).toEqual([])
    },
  },
  ...['yes', 'exec cat /dev/urandom', 'while :; do printf x; done'].map((command): Row => ({
    id: 'R19',
    what: `nobody reads: \`${command}\` blocks and costs nothing, and is cancelled at once`,
    async run({ sandbox }) {
      const box = await sandbox()
      const running = await box.run({ id: randomBytes(16).toString('hex'), command, merge: true })
      await expect.poll(() => settled(box), { timeout: 60_000, interval: 300 }).toBe(true)
      await running.cancel(0)
      for await (const chunk of running.output)
        running.acknowledge({ stdout: chunk.offset + chunk.data.length })
      expect((await running.exit).cause).toBe('cancel')
      running.acknowledge((await running.exit).bytes)
      // The table asks for 50 ms from the cancel to the end; a loaded machine may take ten times that.
      const times = [
        await cancelTime(box, command),
        await cancelTime(box, command),
        await cancelTime(box, command),
      ]
      expect(Math.min(...times)).toBeLessThan(500)
    },
  })),
  {
    id: 'R20',
    what: 'tiny writes to stdout and stderr in turns: none lost, the order kept in each',
    heavy: true,
    async run({ sandbox }) {
      const count = extent(20_000, 200_000)
      const running = await (
        await sandbox()
      ).run({
        id: randomBytes(16).toString('hex'),
        command: [
          'perl',
          '-e',
          `for (0 .. ${count - 1}) { syswrite STDOUT, chr(97 + $_ % 26); syswrite STDERR, chr(65 + $_ % 26) }`,
        ],
        autoAcknowledge: true,
      })
      const seen = { stdout: 0, stderr: 0 }
      for await (const { stream, data } of running.output) {
        const first = stream === 'stdout' ? 97 : 65
        for (const byte of data)
          if (byte !== first + (seen[stream]++ % 26))
            throw new Error(`${stream} is out of order at ${seen[stream]}`)
      }
      expect((await running.exit).bytes).toEqual({ stdout: count, stderr: count })
      expect(seen).toEqual({ stdout: count, stderr: count })
    },
  },
  {
    id: 'R20',
    what: 'the same through the tool, in one stream',
    async run({ me }) {
      const { bytes, code } = await me.shell(
        `exec perl -e 'for (1 .. 20000) { syswrite STDOUT, "a"; syswrite STDERR, "b" }'`,
      )
      expect({ bytes, code }).toEqual({ bytes: 40_000, code: 0 })
    },
  },
  {
    id: 'R22',
    what: 'output closed while the command runs on; a child that keeps it open after the end',
    async run({ me }) {
      const on = await me.shell('exec >&- 2>&-; sleep 0.3; exit 4')
      expect(on).toMatchObject({ code: 4, bytes: 0 })
      const left = await me.shell('sleep 300 & setsid sleep 300 & echo said; exit 5')
      expect(left).toMatchObject({ code: 5, output: 'said\n' })
      expect(left.durationMs).toBeLessThan(10_000)
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
      expect((await me.shell('ps -e -o args= | grep -c "[s]leep 9999"')).output.trim()).toBe('0')
    },
  })),
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
      // The limit is exact within 50 ms; TERM and the grace of a second come after it, and a loaded machine.
      expect(result.durationMs).toBeLessThan(1_000 + 1_000 + 2_000)
    },
  })),
  {
    id: 'R24',
    what: 'an ordinary command is ended when its limit is over, within 50 ms',
    async run({ sandbox }) {
      const box = await sandbox()
      const durations: number[] = []
      for (let i = 0; i < 3; i += 1) {
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
      // Ten times 50 ms for a loaded machine.
      expect(Math.min(...durations)).toBeLessThan(1_500)
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
  {
    id: 'R28',
    what: 'tables of connections, routes and neighbours of the host are as before',
    async run({ me }) {
      const tables = async (): Promise<string[]> =>
        Promise.all(['/proc/net/route', '/proc/net/ipv6_route'].map(hostText))
      const before = await tables()
      await me.shell('for i in $(seq 1 200); do (echo x > /dev/udp/10.0.0.$i/53) 2>/dev/null; done; true')
      expect((await me.shell('wc -l < /proc/net/arp; wc -l < /proc/net/route')).output.trim()).toBe('1\n1')
      expect(await tables()).toEqual(before)
    },
  },

  // Beyond the table.
  {
    id: 'X-R1',
    what: 'SysV memory that a dead command leaves is freed, so the next one has room',
    heavy: true,
    async run({ me }) {
      const hog = `perl -e 'my $k = 0; while (1) { my $id = syscall(29, 0, 100 << 20, 01600); last if $id < 0; my $d = "x" x (100 << 20); shmwrite($id, $d, 0, 100 << 20) or last }'`
      for (let i = 0; i < 3; i += 1) await me.shell(hog, { timeoutMs: 30_000 })
      expect((await me.shell(`perl -e 'my $x = "a" x (300 << 20); print length $x'`)).output).toBe(
        '314572800',
      )
      await me.shell('ipcrm -a')
    },
  },
  {
    id: 'X-R2',
    what: 'a reset takes what outlives processes: SysV and POSIX objects, /dev/shm',
    async run({ me, controller }) {
      await me.shell(
        'ipcmk -Q -M 4096 -S 3; touch /dev/shm/left; perl -e \'syscall(240, "left", 0102, 0600, 0)\'',
      )
      await controller.reset('attacker')
      expect(
        (await me.shell('ipcs -a | grep -c 0x; ls -A /dev/shm /dev/mqueue | grep -v :')).output.trim(),
      ).toBe('0')
    },
  },
  {
    id: 'X-R3',
    what: 'as many terminals as one may open: the neighbour still gets its own',
    async run({ me, neighbour }) {
      const hog = await begun(
        me,
        `exec perl -e '$| = 1; my @keep; while (@keep < 20000 && open(my $p, "+<", "/dev/ptmx")) { push @keep, $p } print scalar(@keep), " $!\n"; sleep 300'`,
      )
      const { output } = await neighbour.shell('script -qec "echo terminal" /dev/null')
      hog.cancel()
      await hog.ended
      expect(output).toMatch(/terminal/)
    },
  },
  {
    id: 'X-R4',
    what: 'descriptors of every kind until none is left: timers, events, polls, pipes, sockets; the neighbour has its own',
    async run({ me, neighbour }) {
      const { output } = await me.shell(
        `perl -e 'for my $n (283, 290, 291, 319) { my $c = 0; my $name = "x"; $c++ while $c < 10000 && ($n == 283 ? syscall(283, 1, 0) : $n == 290 ? syscall(290, 0, 0) : $n == 291 ? syscall(291, 0) : syscall(319, $name, 0)) >= 0; print "$n $! $c\\n"; use POSIX; POSIX::close($_) for 3 .. 5000 }'`,
      )
      expect(output.match(/Too many open files 40\d\d/g)?.length).toBe(4)
      expect(
        (await neighbour.shell('python3 -c "import select, os; select.epoll(); os.pipe(); print(1)"')).output,
      ).toBe('1\n')
    },
  },
  systemCalls('X-R5', 'no real-time class, no higher priority, no deadline; limits do not go up', {
    ...all('141,0,0,-20', 13),
    ...all('160,8,page 160,7,page', EPERM),
  }),
  closed('X-R5', 'chrt -f 50 true'),
  closed('X-R5', 'nice -n -5 true 2>&1 | grep . && exit 1'),
  closed('X-R5', 'ionice -c 1 true'),
  {
    id: 'X-R6',
    what: 'a huge environment and many arguments are refused by type, and below that they work',
    async run({ me, sandbox }) {
      const box = await sandbox()
      const tooLong = await box
        .run({
          id: randomBytes(16).toString('hex'),
          command: ['true', ...Array.from({ length: 40 }, () => 'x'.repeat(100_000))],
        })
        .catch((error: unknown) => error)
      expect(tooLong).toMatchObject({ code: 'invalid_arguments' })
      expect((await me.shell('true $(seq 1 20000); echo $?')).output).toBe('0\n')
      expect((await me.shell('/bin/true $(seq 1 1000000) || echo refused')).output).toMatch(
        /Argument list too long\nrefused/,
      )
    },
  },
  {
    id: 'X-R7',
    what: 'locked memory ends at its limit; no huge pages',
    async run({ me }) {
      const { output } = await me.shell(
        `perl -e 'my $length = 64 << 20; my $at = syscall(9, 0, $length, 3, 34, -1, 0); print "mapped\n" if $at > 0; print syscall(149, $at, $length) < 0 ? 0 + $! : "locked", "\n"; $! = 0; print syscall(151, 3) < 0 ? 0 + $! : "locked", "\n"; $! = 0; print syscall(30, 1) < 0 ? 0 + $! : "attached"; print "\n", syscall(29, 0, $length, 07600) < 0 ? 0 + $! : "huge"'`,
      )
      // ENOMEM, or EPERM where memory may not be locked at all; EINVAL; EPERM for huge pages.
      expect(output).toMatch(/^mapped\n(12|1)\n(12|1)\n22\n(1|12|38|22)$/)
    },
  },
  {
    id: 'X-R8',
    what: 'locks, leases and queues of the kernel that a command holds go with it',
    async run({ me }) {
      await me.shell('touch lockfile; flock lockfile sleep 300 & sleep 0.2; exit 0')
      expect((await me.shell('flock -n lockfile echo free; rm lockfile')).output).toBe('free\n')
    },
  },
]

/** Whether a sandbox has stopped using the processor. */
async function settled(box: Sandbox): Promise<boolean> {
  const before = await ticks(box)
  await shell(box, 'sleep 0.5')
  return (await ticks(box)) - before <= 5
}
