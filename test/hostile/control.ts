/** Class P: the control channel and the supervisor. */
import { randomBytes } from 'node:crypto'

import { expect } from 'vitest'

import { connectSandbox } from '../../packages/sandbox/src/sbxd/client.ts'
import { SandboxError } from '../../packages/sandbox/src/errors.ts'
import { deriveSandboxKey } from '../../packages/sandbox/src/controller/key.ts'
import { shell } from '../../packages/sandbox/test/support/docker-fixture.ts'
import { extent } from '../campaign.ts'
import { all, closed, EPERM, prints, type Row, systemCalls } from './row.ts'
import type { Stage } from './stage.ts'
import { rows as streams } from './streams.ts'

/** A struct siginfo with this code, for rt_sigqueueinfo. */
const SIGINFO = String.raw`sub info { my ($signal, $code) = @_; pack("iiiiii", $signal, 0, $code, 0, 0, 0) . "\0" x 104 }`

/** Plays `attack` and then asks whether it is still the same boot of the same supervisor. */
function survives(id: string, what: string, attack: string): Row {
  return {
    id,
    what,
    async run({ sandbox, me }) {
      const before = await sandbox()
      await me.shell(attack)
      expect((await me.shell('echo alive; cat /proc/1/comm')).output).toBe('alive\nsbxd\n')
      const after = await sandbox()
      expect([after.id, after.bootId]).toEqual([before.id, before.bootId])
    },
  }
}

/** Ends with the cause that the table names, and the supervisor is the same. */
async function ended(
  stage: Stage,
  command: string,
): Promise<{ status: string; reason?: string; signal?: string }> {
  const { status, reason, signal } = await stage.me.shell(command, { timeoutMs: 20_000 })
  return { status, reason, signal }
}

const OTHER_PROCESS =
  '/proc/1/environ /proc/1/mem /proc/1/maps /proc/1/smaps /proc/1/pagemap /proc/1/stack /proc/1/syscall /proc/1/auxv /proc/1/io /proc/1/personality /proc/1/patch_state /proc/1/task/1/mem /proc/1/task/1/environ /proc/1/timers /proc/1/map_files /proc/1/root /proc/1/cwd /proc/1/fd /proc/1/fdinfo /proc/1/ns/mnt'

export const rows: Row[] = [
  ...streams,
  survives(
    'P01',
    'every signal by kill',
    'for s in $(kill -l | tr -d "0-9)"); do kill -$s 1; done 2>/dev/null; for s in $(seq 1 64); do kill -$s 1; done 2>/dev/null',
  ),
  survives(
    'P01',
    'signals by tgkill, tkill and pidfd_send_signal, to each of its threads',
    callEach(
      'for my $s (9, 11, 15, 19, 31, 34, 64) { for my $t (map { m{(\\d+)$} } glob "/proc/1/task/*") { syscall(234, 1, 0 + $t, $s); syscall(200, 0 + $t, $s) } my $fd = syscall(434, 1, 0); syscall(424, $fd, $s, 0, 0); syscall(424, $fd, $s, 0, 1) }',
    ),
  ),
  survives(
    'P01',
    'a TERM that carries no sender, or one of its own choice',
    `perl -e '${SIGINFO} for my $code (-1, -2, -6, -60, 0, 1, 128) { my $i = info(15, $code); syscall(129, 1, 15, $i); syscall(297, 1, 1, 15, $i); my $fd = syscall(434, 1, 0); syscall(424, $fd, 15, $i, 0) }'`,
  ),
  survives(
    'P01',
    'a TERM as the owner of a socket (F_SETOWN, F_SETSIG)',
    `perl -MSocket -e 'for my $s (15, 9, 19, 0) { socketpair(A, B, AF_UNIX, SOCK_STREAM, 0); fcntl(A, 8, 1); fcntl(A, 10, $s); fcntl(A, 4, 020000 | 2); syswrite(B, "x") }'`,
  ),
  survives(
    'P01',
    'a TERM whose siginfo is lost because the queue of the uid is full',
    // The kernel still delivers it then, and says that the sender is 0, as of one from outside.
    `perl -e '${SIGINFO} my $m = pack("Q", ~0); my $o = pack("Q", 0); syscall(14, 0, $m, $o, 8); my $me = $$; my $r = info(35, -1); my $n = 0; $n++ while $n < 100000 && syscall(129, $me, 35, $r) == 0; my $t = info(15, -1); syscall(129, 1, 15, $t); syscall(234, 1, 1, 15); syscall(200, 1, 15); syscall(297, 1, 1, 15, $t); my $fd = syscall(434, 1, 0); syscall(424, $fd, 15, 0, 1); my $td = syscall(434, 1, 128); syscall(424, $td, 15, 0, 0); kill 15, 1; select undef, undef, undef, 0.2'`,
  ),
  {
    id: 'P01',
    what: 'what is sent to process 1 does not fill the queue for the commands after',
    async run({ me }) {
      const { output } = await me.shell(
        `perl -e '${SIGINFO} my $i = info(40, -1); for (1 .. 5000) { syscall(129, 1, 40, $i); kill 41, 1 }'; grep SigQ /proc/self/status`,
      )
      const used = Number(/SigQ:\s+(\d+)/.exec(output)?.[1])
      expect(used).toBeLessThan(64)
    },
  },
  {
    id: 'P02',
    what: 'kill -9 -1: everything dies but the supervisor; another command says how it ended',
    async run({ me, sandbox }) {
      const boot = (await sandbox()).bootId
      const other = me.shell('echo on; exec sleep 300', { onOutput: () => begun.resolve() })
      const begun = Promise.withResolvers<void>()
      await begun.promise
      await me.shell('kill -9 -1')
      expect((await other).signal === 'SIGKILL' || (await other).reason === 'interrupted').toBe(true)
      expect((await me.shell('echo alive')).output).toBe('alive\n')
      expect((await sandbox()).bootId).toBe(boot)
    },
  },
  ...OTHER_PROCESS.split(' ').map((path) =>
    closed(
      'P04',
      `if [ -d ${path} ]; then ls ${path}/; else head -c1 ${path}; readlink ${path}; fi`,
      /denied|not permitted|No such/,
    ),
  ),
  {
    id: 'P04',
    what: 'a shim is as closed as process 1',
    async run({ me }) {
      const { output } = await me.shell(
        'for f in mem environ maps fd/ root/ cwd/; do head -c1 /proc/$PPID/$f || ls /proc/$PPID/$f; done 2>&1 | grep -c denied; cat /proc/$PPID/comm',
      )
      expect(output).toMatch(/^\d+\nsbxd\n$/)
      expect(Number(output.split('\n')[0])).toBeGreaterThanOrEqual(6)
    },
  },
  {
    id: 'P04',
    what: 'limits, priority, processors and class of process 1 cannot be changed',
    async run({ me }) {
      const state =
        'cut -d" " -f18,19,40,41 /proc/1/stat; grep -E "Cpus_allowed:" /proc/1/status; ionice -p 1; grep "open files" /proc/1/limits'
      const before = (await me.shell(state)).output
      await me.shell(
        'renice -n 19 -p 1; renice -n 19 -u $(id -u); renice -n 19 -g 1; chrt -i -p 0 1; chrt -b -p 0 1; taskset -p 1 1; taskset -ap 1 1; ionice -c 3 -p 1; ionice -c 3 -u $(id -u); ionice -c 3 -P 1; prlimit --pid 1 --nofile=0:0',
      )
      expect((await me.shell(state)).output).toBe(before)
    },
  },
  systemCalls('P04', 'limits of process 1; one’s own are one’s own', {
    '302,1,7,0,0': EPERM,
    '302,0,7,0,0': 'open',
  }),
  closed('P04', 'mkdir -p /tmp/x && mount --bind /proc/1 /tmp/x; s=$?; rmdir /tmp/x; exit $s'),
  {
    id: 'P05',
    what: 'a stop from outside is instant, also of a busy sandbox',
    heavy: true,
    async run({ controller, fixture }) {
      const one = await controller.acquire('stopped')
      const deaf = 'trap "" TERM; for i in {1..100}; do sleep 300 & done'
      await one.run({ id: randomBytes(16).toString('hex'), command: `${deaf}; yes` })
      await one.run({ id: randomBytes(16).toString('hex'), command: `${deaf}; while :; do (:); done` })
      const from = performance.now()
      await controller.stop('stopped')
      const took = performance.now() - from
      expect((await controller.status('stopped')).state).toBe('stopped')
      // Without it the engine waits two seconds and kills then: what it took is the engine's own work.
      expect(took).toBeLessThan(2_000)
      expect(fixture.deployment).toMatch(/^test-/)
    },
  },
  {
    id: 'P06',
    what: 'the shim killed, its children gone off on their own: none is left, and the command says so',
    async run(stage) {
      const result = await ended(
        stage,
        '(setsid sleep 300 & setsid sh -c "setsid sleep 300 & sleep 300" &) ; kill -9 $PPID; sleep 300',
      )
      expect(result).toMatchObject({ status: 'failed', reason: 'interrupted' })
    },
  },
  {
    id: 'P06',
    what: 'the shim stopped, traced or starved: the command ends all the same',
    async run(stage) {
      const result = await stage.me.shell('kill -STOP $PPID; exec sleep 300', { timeoutMs: 1_000 })
      expect(['interrupted', 'timeout']).toContain(result.reason)
      const other = await stage.me.shell(
        '(while :; do kill -STOP $PPID; kill -CONT $PPID; done) & sleep 0.3; exit 3',
        { timeoutMs: 5_000 },
      )
      expect(other.code === 3 || other.status === 'failed').toBe(true)
    },
  },
  {
    id: 'P09',
    what: 'noise before the first frame and between frames, and the options of a Docker client, are skipped',
    heavy: true,
    async run(stage) {
      const sandbox = await stage.controller.acquire('noisy')
      const { id } = sandbox
      await stage.controller.stop('noisy')
      // Imitates the start of process 1: noise first, then a handshake with the key that it does not have yet.
      const { stream, keyId } = await stage.fixture.backend.open({ id, state: 'stopped' })
      stream.write('{"stream":true,"stdin":true,"stdout":true,"hijack":true}')
      for (let i = 0; i < extent(1, 20); i += 1) stream.write(randomBytes(65_536))
      const key = deriveSandboxKey(stage.fixture.deploymentKey, keyId)
      const connected = await connectSandbox({
        id,
        stream,
        key,
        epoch: await stage.fixture.ledger.nextEpoch(),
        handshakeMs: 30_000,
      })
      expect((await shell(connected, 'echo heard')).output).toBe('heard\n')
      await connected.close()
    },
  },
  {
    id: 'P10',
    what: 'a second controller with an old epoch or a wrong key is refused, the first one undisturbed',
    async run(stage) {
      const sandbox = await stage.sandbox()
      const running = stage.me.shell('sleep 1; echo undisturbed')
      const { backend } = stage.fixture
      const seen = { id: sandbox.id, state: 'running' } as const
      const { stream: unused, keyId } = await backend.open(seen)
      unused.destroy()
      const key = deriveSandboxKey(stage.fixture.deploymentKey, keyId)
      for (const [wrong, code] of [
        [{ key, epoch: 0 }, 'fenced'],
        [{ key: randomBytes(32), epoch: 1_000_000 }, 'protocol'],
      ] as const) {
        const { stream } = await backend.open(seen)
        const refused = await connectSandbox({ id: sandbox.id, stream, handshakeMs: 20_000, ...wrong }).catch(
          (error: unknown) => error,
        )
        expect(refused).toBeInstanceOf(SandboxError)
        expect(refused).toMatchObject({ code })
      }
      expect((await running).output).toBe('undisturbed\n')
    },
  },

  // Beyond the table.
  {
    id: 'X-P1',
    what: 'a signal, a file and a socket of one command do not reach into the next',
    async run({ me }) {
      // An abstract socket dies with its process; nothing of it is there for the next command.
      await me.shell(
        `perl -MSocket -e 'socket(S, AF_UNIX, SOCK_STREAM, 0); bind(S, pack_sockaddr_un("\\0left")); listen(S, 5)' & disown; sleep 0.2`,
      )
      expect((await me.shell('grep -c left /proc/net/unix')).output.trim()).toBe('0')
    },
  },
  {
    id: 'X-P2',
    what: 'descriptors passed to and fro over a socket do not keep a command, or the supervisor, from ending',
    async run({ me }) {
      const passing = `python3 -c 'import socket,os,array
a,b=socket.socketpair(socket.AF_UNIX,socket.SOCK_STREAM)
for i in range(200):
  try: a.sendmsg([b"x"],[(socket.SOL_SOCKET,socket.SCM_RIGHTS,array.array("i",[a.fileno(),b.fileno(),1,2]))])
  except OSError as e: print(e.errno); break
print("done")'`
      expect((await me.shell(passing)).output).toMatch(/done\n$/)
    },
  },
  prints(
    'X-P3',
    'no descriptor of the supervisor is inherited by any shell',
    'ls -l /proc/self/fd | grep -c -E "socket|eventpoll|signalfd|eventfd"',
    '0',
  ),
  systemCalls('X-P4', 'process 1 cannot be moved, scheduled, pinned or signalled through its thread', {
    ...all('144,1,5,page 142,1,page 314,1,page,0 203,1,8,page 141,0,1,19 251,1,1,24576', EPERM),
    ...all('200,1,0 234,1,1,0 129,1,15,page 297,1,1,15,page 434,1,128 424,0,15,page,0 424,0,15,0,1', EPERM),
    ...all('141,0,0,19 251,1,0,24576 200,self,0 234,self,self,0 434,self,0', 'open'),
    // EINVAL, EBADF: the kernel's own answers about what one may do.
    ...all('203,self,8,page 144,self,9,page', 22),
    '424,-1,15,0,0': 9,
  }),
]

/** A perl program in one line of shell. */
function callEach(program: string): string {
  return `perl -e '${program}'`
}
