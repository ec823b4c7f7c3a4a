/** Class R: using up what is shared, within one sandbox and with its neighbours. */
import { randomBytes } from 'node:crypto'

import { expect } from 'vitest'

import { all, begun, closed, EPERM, prints, type Row, systemCalls } from './row.ts'
import { hostText } from './stage.ts'
import { rows as flow } from './flow.ts'
import { rows as memory } from './memory.ts'
import { rows as processes } from './processes.ts'

export const rows: Row[] = [
  ...processes,
  ...memory,
  ...flow,
  prints(
    'R08',
    'limits of one process, which it cannot raise',
    'ulimit -Hn; ulimit -Hc; ulimit -Hl; ulimit -Hi; ulimit -Hq; ulimit -n 5000 2>/dev/null || echo no; ulimit -c unlimited; awk "/core/ { print \\$5, \\$6 }" /proc/self/limits',
    '4096\n0\n64\n1024\n262144\nno\n1 1',
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
    async run({ me, neighbour, engine }) {
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
      // Kubernetes leaves the kernel’s own limits, and the memory limit counts the objects.
      const most = engine.name === 'docker' ? [64, 256, 64] : [32_000, 32_000, 4_096]
      for (const [at, kind] of ['msg', 'sem', 'shm'].entries())
        expect(Number(counts[kind]), kind).toBeLessThanOrEqual(most[at] ?? 0)
      const theirs = await neighbour.shell(
        'ipcs -a | grep -c 0x; ipcmk -Q >/dev/null && ipcmk -M 4096 >/dev/null && ipcmk -S 1 >/dev/null && echo works; ipcrm -a',
      )
      expect(theirs.output).toBe('0\nworks\n')
      await me.shell('ipcrm -a')
    },
  },
  {
    id: 'R18',
    what: 'nothing gets to process 1’s stdout, and the engine keeps no log',
    async run({ me, sandbox, engine }) {
      await me.shell(
        'head -c 64M /dev/zero; echo x > /proc/1/fd/1; echo x > /proc/1/fd/2; echo x > /dev/console',
      )
      expect(await engine.log((await sandbox()).id)).toBe('')
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
  {
    id: 'X-R3',
    what: 'as many terminals as one process may open: the host’s reserve is not touched, and the end gives all back',
    async run({ me, neighbour }) {
      const hog = await begun(
        me,
        `exec perl -e '$| = 1; my @keep; while (@keep < 20000 && open(my $p, "+<", "/dev/ptmx")) { push @keep, $p } print scalar(@keep), " ", 0 + $!, "\n"; sleep 300'`,
      )
      const [most, reserved] = await Promise.all(
        ['max', 'reserve'].map(async (name) => Number(await hostText(`/proc/sys/kernel/pty/${name}`))),
      )
      hog.cancel()
      const [count, errno] = (await hog.ended).output.trim().split(' ').map(Number)
      // EMFILE: the process's own descriptors; ENOSPC: the terminals that the kernel lets containers have together.
      expect([24, 28]).toContain(errno)
      if (most && reserved) expect(count).toBeLessThanOrEqual(most - reserved)
      // Its end gives all of them back.
      const terminal = async (): Promise<string> =>
        (await neighbour.shell('script -qec "echo terminal" /dev/null')).output
      await expect.poll(terminal, { timeout: 30_000, interval: 200 }).toMatch(/terminal/)
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
  {
    id: 'X-R10',
    what: 'all room for pipes that a uid may have: other commands get the least there is, and work',
    async run({ me, neighbour }) {
      const hog = await begun(
        me,
        `exec python3 -c 'import fcntl, os, time
keep = []
try:
  while len(keep) < 2000:
    keep.append(os.pipe()); fcntl.fcntl(keep[-1][1], fcntl.F_SETPIPE_SZ, 1 << 20)
except OSError: pass
print(len(keep), flush=True); time.sleep(300)'`,
      )
      const work =
        'head -c 3000000 /dev/zero | cat | wc -c; head -c 3000000 /dev/zero >&2; seq 1000 | tail -n 1'
      const [mine, theirs] = [await me.shell(work), await neighbour.shell(work)]
      hog.cancel()
      expect(Number((await hog.ended).output)).toBeLessThan(2_000)
      for (const { code, bytes } of [mine, theirs])
        expect({ code, bytes }).toEqual({ code: 0, bytes: 3_000_000 + '3000000\n1000\n'.length })
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
    id: 'X-R8',
    what: 'locks, leases and queues of the kernel that a command holds go with it',
    async run({ me }) {
      await me.shell('touch lockfile; flock lockfile sleep 300 & sleep 0.2; exit 0')
      expect((await me.shell('flock -n lockfile echo free; rm lockfile')).output).toBe('free\n')
    },
  },
  {
    id: 'X-R9',
    what: 'a command is the first to go when memory is full, and cannot go below the ordinary score',
    async run({ me, engine }) {
      const { output } = await me.shell(
        'f=/proc/self/oom_score_adj; cat $f; for score in -1 -500 900; do (echo $score > $f) 2>/dev/null && echo higher || echo refused; done',
      )
      // In a Pod process 1 has almost the highest score, below which a runtime with CAP_SYS_RESOURCE lets none go.
      expect(output).toMatch(
        engine.name === 'docker'
          ? /^500\nrefused\nrefused\nhigher\n$/
          : /^1000\nrefused\nrefused\n(?:refused|higher)\n$/,
      )
    },
  },
]
