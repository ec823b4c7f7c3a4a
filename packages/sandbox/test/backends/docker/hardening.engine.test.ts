import { afterAll, beforeAll, describe, expect, test } from 'vitest'

import { extent } from '../../../../../test/campaign.ts'
import type { Sandbox } from '../../../src/sandbox.ts'
import { docker, dockerFixture, shell, type DockerFixture } from '../../support/docker-fixture.ts'

let fixture: DockerFixture
let sandbox: Sandbox
const sh = async (command: string): Promise<string> => (await shell(sandbox, command)).output.trim()

beforeAll(async () => {
  fixture = await dockerFixture()
  sandbox = await fixture.controller().acquire('tester')
})
afterAll(() => fixture.dispose())

/**
 * `name errno` of each system call, so that an open system, which gives another errno, cannot pass.
 */
const SYSCALLS = String.raw`
$| = 1;
for (@ARGV) {
  my ($number, @args) = map { 0 + $_ } split /,/;
  $! = 0;
  my $result = syscall($number, @args, (0) x (5 - @args));
  printf "%s=%s\n", $_, $result >= 0 ? "open" : 0 + $!;
}`

async function syscalls(...calls: string[]): Promise<Record<string, string>> {
  const output = await sh(`perl -e '${SYSCALLS}' ${calls.join(' ')}`)
  return Object.fromEntries(output.split('\n').map((line) => line.split('=', 2) as [string, string]))
}

const all = (calls: string[], answer: string): Record<string, string> =>
  Object.fromEntries(calls.map((call) => [call, answer]))

test('it is a real sandbox: PID 1 is sbxd', async () => {
  expect(await sh('cat /proc/1/comm')).toBe('sbxd')
})

describe('escape and privilege', () => {
  test('E01 no capability in any set, the filter is on, no new privileges', async () => {
    expect(
      (await sh('grep -E "^(Cap|Seccomp:|NoNewPrivs)" /proc/self/status')).replaceAll('\t', ' ').split('\n'),
    ).toEqual([
      ...['Inh', 'Prm', 'Eff', 'Bnd', 'Amb'].map((set) => `Cap${set}: 0000000000000000`),
      'NoNewPrivs: 1',
      'Seccomp: 2',
    ])
  })

  test('its uid and gid are the slot’s, with a name and a home', async () => {
    const slot = await fixture.ledger.find('tester')
    expect(await sh('id -u; id -g; id -G; whoami; echo ~; pwd')).toBe(
      [slot?.uid, slot?.uid, slot?.uid, 'user', '/workspace', '/workspace'].join('\n'),
    )
  })

  test.each([
    ['E02', 'mount -t tmpfs x /mnt'],
    ['E02', 'mount -o remount,rw /'],
    ['E03', 'mknod /tmp/d b 8 0'],
    ['E04', 'chroot / true'],
    ['E06', 'date -s @0'],
    ['E06', 'dmesg'],
    ['E08', 'unshare -Urm true'],
    ['E08', 'unshare -n true'],
    ['E25', 'echo 1 > /sys/fs/cgroup/cgroup.procs || echo 1 > /sys/fs/cgroup/pids/cgroup.procs'],
    ['E26', 'echo x > /proc/sys/kernel/core_pattern'],
    ['E26', 'echo b > /proc/sysrq-trigger'],
    ['E29', 'cp /bin/true /proc/1/exe'],
    ['E29', 'cp /bin/true /usr/bin/sbxd'],
    ['F01', 'touch /etc/x'],
    ['F01', 'echo x >> /etc/passwd'],
    ['P04', 'cat /proc/1/environ'],
    ['P04', 'cat /proc/1/maps'],
    ['P04', 'head -c1 /proc/1/mem'],
    ['P04', 'ls /proc/1/root/'],
    ['E27', 'ls /proc/1/fd'],
  ])('%s closed: %s', async (_id, command) => {
    const { code, output } = await shell(sandbox, command)
    expect(code).not.toBe(0)
    expect(output).toMatch(
      /not permitted|denied|Read-only|superuser|must be root|busy|not implemented|No such file|failed/i,
    )
  })

  test('E07 no set-uid or set-gid file', async () => {
    expect(await sh('find / -xdev -perm /6000 2>/dev/null')).toBe('')
  })

  test('E09 only the harmless devices', async () => {
    const harmless = 'fd full mqueue null ptmx pts random shm stderr stdin stdout tty urandom zero'.split(' ')
    // The link /dev/core is there with some engines; what it points to is masked.
    expect((await sh('ls -I core /dev')).split('\n')).toEqual(harmless)
  })

  test('E10, E11, E13, E20 the kernel’s risky calls', async () => {
    const calls = [
      // io_uring
      '425,1,0 426,0 427,0',
      // userfaultfd, bpf, perf_event_open
      '323,1 321,0,0,0 298,0',
      // ptrace, process_vm_readv and writev, pidfd_getfd, kcmp, process_madvise
      '101,16,1 101,0 310,1 311,1 438,0,0 312,0,0 440,0',
      // fsopen, move_mount, open_tree, mount_setattr, mount, pivot_root, chroot
      '430,0 429,0 428,0 442,0 165,0 155,0 161,0',
      // file handles, memfd_secret, keyrings, fanotify, vmsplice, init_module, kexec, syslog
      '303,0 304,0 447,0 250,0 248,0 300,0 278,0 175,0 246,0 103,0',
    ].flatMap((line) => line.split(' '))
    expect(await syscalls(...calls)).toEqual(all(calls, '1'))
  })

  test('E08 namespaces: EPERM, and clone3 does not exist', async () => {
    expect(await syscalls('272,268435456', '308,0', '435,0,0')).toEqual({
      '272,268435456': '1',
      '308,0': '1',
      '435,0,0': '38',
    })
  })

  test('E14, E15 socket families: AF_ALG, AF_VSOCK, packet and other netlink are closed, the usual ones open', async () => {
    const closed = ['41,38,5', '41,40,1', '41,17,3', '41,16,3,15', '41,16,3,12', '41,31,3', '41,29,3']
    expect(await syscalls(...closed)).toEqual(all(closed, '1'))
    const open = ['41,1,1', '41,2,1', '41,10,1', '41,16,3,0']
    expect(await syscalls(...open)).toEqual(all(open, 'open'))
  })

  test('E22 TIOCSTI and TIOCLINUX, also with a bit above the 32nd set; another request is not the filter’s business', async () => {
    expect(await syscalls('16,0,21522', '16,0,4294988818', '16,0,21532', '16,0,21505')).toEqual({
      '16,0,21522': '1',
      '16,0,4294988818': '1',
      '16,0,21532': '1',
      '16,0,21505': '25',
    })
  })

  test('E18 the x32 calls are closed', async () => {
    const { code, signal, output } = await shell(
      sandbox,
      `exec perl -e 'print syscall(0x40000000 + 39) >= 0 ? "open" : 0 + $!'`,
    )
    // Killed by the filter, EPERM or ENOSYS.
    if (signal === undefined && code === 0) expect(['1', '38']).toContain(output)
    else expect(signal).toBe('SIGSYS')
  })

  test('E30 a crash leaves no core', async () => {
    const { signal } = await shell(
      sandbox,
      'ulimit -c unlimited 2>/dev/null; exec perl -e "kill SEGV => \\$\\$"',
    )
    expect(signal).toBe('SIGSEGV')
    expect(await sh('ls -A; ulimit -Hc')).toBe('0')
  })

  test('E30 the limit of cores is the one at which no program of the host is started, whatever a command sets', async () => {
    const limit = 'grep "Max core" /proc/self/limits | tr -s " " | cut -d " " -f 5,6'
    expect(
      await sh(
        `${limit}; ulimit -c 0; ${limit}; ulimit -c unlimited; ${limit}; prlimit --core=0 bash -c '${limit}'`,
      ),
    ).toBe(Array(4).fill('1 1').join('\n'))
    expect(
      await sh(
        `python3 -c 'import resource as r; r.setrlimit(r.RLIMIT_CORE, (0, 0)); print(r.getrlimit(r.RLIMIT_CORE))'`,
      ),
    ).toBe('(1, 1)')
    // Programs that refuse to run where they cannot forbid cores.
    expect(await sh('ssh-agent true && echo started')).toBe('started')
  })
})

describe('the supervisor', () => {
  test('P01, P02 no signal from inside reaches it', async () => {
    const boot = sandbox.bootId
    await shell(sandbox, 'for s in KILL STOP SEGV TERM HUP INT QUIT; do kill -$s 1; done')
    await shell(sandbox, 'kill -9 -1')
    expect(await sh('echo alive; cat /proc/1/comm')).toBe('alive\nsbxd')
    expect(sandbox.bootId).toBe(boot)
  })

  test('P01 a forged TERM does not reach it: a sender of its own choice, or no sender at all', async () => {
    const boot = sandbox.bootId
    // rt_sigqueueinfo with the code SI_QUEUE and the pid 0, as an outside signal would have it.
    await shell(
      sandbox,
      `perl -e 'my $info = pack("iiiiii", 15, 0, -1, 0, 0, 0) . "\\0" x 104; print syscall(129, 1, 15, $info), "\\n"'`,
    )
    // Process 1 as the owner of a socket that signals its owner with TERM: F_SETOWN, F_SETSIG,
    // O_ASYNC.
    await shell(
      sandbox,
      `perl -MSocket -e 'socketpair(A, B, AF_UNIX, SOCK_STREAM, 0); fcntl(A, 8, 1); fcntl(A, 10, 15); fcntl(A, 4, 020000 | 2); syswrite(B, "x")'`,
    )
    expect(await sh('echo alive; cat /proc/1/comm')).toBe('alive\nsbxd')
    expect(sandbox.bootId).toBe(boot)
  })

  test('P04 no command gets hold of the memory of another’s shim, not even while that begins', async () => {
    // The last process id is public, so the next one's memory can be tried again and again until it
    // exists.
    const spy = String.raw`
      use Fcntl;
      open my $load, "<", "/proc/loadavg";
      my $taken = 0;
      until (-e "stop-spying") {
        for (1 .. 500) {
          seek $load, 0, 0;
          my ($last) = <$load> =~ /(\d+)$/;
          for my $pid ($last .. $last + 2) {
            sysopen(my $memory, "/proc/$pid/mem", O_RDWR) or next;
            open(my $name, "<", "/proc/$pid/comm") or next;
            $taken++ if <$name> eq "sbxd\n";
          }
        }
      }
      print $taken;`
    await sandbox.files.write('spy.pl', Buffer.from(spy))
    const spying = shell(sandbox, 'perl spy.pl')
    for (let i = 0; i < extent(60, 300); i += 1) await shell(sandbox, 'true')
    await sandbox.files.write('stop-spying', Buffer.alloc(0))
    expect((await spying).output).toBe('0')
    await shell(sandbox, 'rm spy.pl stop-spying')
  })

  test('a command is offered to the OOM killer before sbxd', async () => {
    expect(Number(await sh('cat /proc/self/oom_score_adj'))).toBeGreaterThanOrEqual(500)
    expect(Number(await sh('cat /proc/1/oom_score_adj'))).toBeLessThan(500)
  })

  test('P04 no command changes the limits of process 1: without descriptors nothing would ever start again', async () => {
    const [of1, own] = ['302,1,7,0,0', '302,0,7,0,0']
    expect(await syscalls(of1, own)).toEqual({ [of1]: '1', [own]: 'open' })
    expect(await sh('prlimit --pid 1 --nofile=0:0 2>/dev/null; ulimit -n')).toBe('4096')
    expect(await sh('echo works')).toBe('works')
  })

  test('E27 a command has no descriptor but its own three', async () => {
    expect(await sh('ls /proc/self/fd | tr "\\n" " "')).toMatch(/^0 1 2 3$/)
  })

  test('P05 an outside stop is instant, also of a sandbox that is busy', async () => {
    const other = fixture.controller()
    const one = await other.acquire('stopper')
    const deaf = 'trap "" TERM; for i in {1..100}; do sleep 300 & done'
    await one.run({ id: 'a'.repeat(32), command: `${deaf}; yes` })
    await one.run({ id: 'b'.repeat(32), command: `${deaf}; while :; do (:); done` })
    const from = performance.now()
    await other.stop('stopper')
    // The engine would wait two seconds before it kills.
    expect(performance.now() - from).toBeLessThan(1_000)
    expect((await other.status('stopper')).state).toBe('stopped')
  })
})

describe('limits, network and what can be seen', () => {
  test('N01 only loopback', async () => {
    expect(await sh('tail -n +3 /proc/net/dev | cut -d: -f1 | tr -d " "')).toBe('lo')
  })

  test('N02 nothing is reachable', async () => {
    const { code, output } = await shell(
      sandbox,
      'for h in 169.254.169.254 172.17.0.1 10.0.0.1; do curl -sS -m 2 http://$h/ 2>&1; done; getent hosts example.org',
    )
    expect(code).not.toBe(0)
    expect(output.trim().split('\n')).toHaveLength(3)
    expect(output).not.toMatch(/timed out/)
  })

  test('F02 the root is read-only and the workspace is the one volume', async () => {
    const mounts = (await sh('cat /proc/mounts')).split('\n').map((line) => line.split(' '))
    const of = (path: string): string[] =>
      mounts.findLast(([, where]) => where === path)?.[3]?.split(',') ?? []
    expect(of('/')).toContain('ro')
    expect(of('/workspace')).toContain('rw')
    for (const path of ['/tmp', '/run'])
      expect(of(path)).toEqual(expect.arrayContaining(['rw', 'nosuid', 'nodev']))
    const writable = mounts
      .filter(([, where, , how]) => how?.split(',').includes('rw') && !/^\/(proc|dev|sys)/.test(where ?? ''))
      .map(([, where]) => where)
    // The engine's own three files are on its disk, and only root could write them.
    expect(
      writable
        .filter((where) => !where?.startsWith('/etc/'))
        .toSorted((a = '', b = '') => a.localeCompare(b)),
    ).toEqual(['/run', '/tmp', '/workspace'])
  })

  test('R05 /tmp is bounded, and commands still run when it is full', async () => {
    const { output } = await shell(sandbox, 'head -c 2G /dev/zero > /tmp/full; stat -c %s /tmp/full')
    expect(output).toMatch(/No space left/)
    expect(Number(output.trim().split('\n').at(-1))).toBe(256 * 1024 * 1024)
    expect(await sh('rm /tmp/full; echo fine')).toBe('fine')
  })

  test('R09 a file larger than its limit is refused', async () => {
    const { code } = await shell(sandbox, 'fallocate -l 1T f')
    expect(code).not.toBe(0)
  })

  test('R08 limits of one process', async () => {
    expect(await sh('ulimit -Hn; ulimit -Hc; ulimit -Hl; ulimit -Hi')).toBe('4096\n0\n64\n1024')
  })

  test('I01 files that reveal the host are empty or closed', async () => {
    const { output } = await shell(
      sandbox,
      'cat /proc/kallsyms /proc/modules /proc/config.gz /proc/interrupts /proc/timer_list /proc/keys /proc/kcore 2>/dev/null | head -c 100; ls /proc/scsi /sys/firmware /sys/class/dmi/ /sys/devices/virtual/dmi 2>/dev/null | grep -v :',
    )
    expect(output.trim()).toBe('')
  })

  test('I09 the environment is the fixed list, and PID 1 was given nothing else', async () => {
    const names = (await sh('env')).split('\n').map((line) => line.split('=')[0])
    expect(
      names.filter(
        (name) =>
          ![
            'PATH',
            'HOME',
            'SHELL',
            'LANG',
            'TERM',
            'TZ',
            'SANDBOX',
            'PWD',
            'SHLVL',
            '_',
            'OLDPWD',
            'USER',
            'HOSTNAME',
            'LOGNAME',
          ].includes(name ?? ''),
      ),
    ).toEqual([])
  })

  test('R18 the engine keeps no log of it', async () => {
    await shell(sandbox, 'head -c 1M /dev/zero')
    const path = await docker('inspect', '-f', '{{.HostConfig.LogConfig.Type}} {{.LogPath}}', sandbox.id)
    expect(path.trim()).toBe('none')
  })

  test('I10 labels name no user', async () => {
    expect(
      await docker('inspect', '-f', '{{json .Config.Labels}} {{.Name}} {{json .Config.Env}}', sandbox.id),
    ).not.toContain('tester')
  })
})

describe('what people expect of a shell works behind the filter', () => {
  test.each([
    ['bash job control', 'bash -ic "sleep 5 & jobs %1; kill %1; wait %1" 2>/dev/null | grep -c Running', '1'],
    [
      'node with threads',
      "node -e \"new (require('worker_threads').Worker)('console.log(1)',{eval:true})\"",
      '1',
    ],
    ['npm', 'npm --version | grep -c .', '1'],
    ['npm installs globally to the workspace', 'npm prefix -g', '/workspace/.local'],
    [
      'python with processes',
      'python3 -c "import multiprocessing as m; print(sum(m.Pool(2).map(abs,[-1,-2])))"',
      '3',
    ],
    ['python venv', 'python3 -m venv v && v/bin/python -c "print(1)"', '1'],
    [
      'gcc and make',
      "printf 'int main(){return 0;}' >a.c && printf 'a: a.c\\n\\tgcc -o a a.c\\n' >Makefile && make -s && ./a && echo 1",
      '1',
    ],
    [
      'git with an identity',
      'git init -q r && cd r && git commit -q --allow-empty -m first && git log --format=%s',
      'first',
    ],
    ['ssh-keygen knows who it is', 'ssh-keygen -q -t ed25519 -N "" -f k && test -s k.pub && echo 1', '1'],
    ['strace-less pipelines', 'seq 100000 | sort -rn | head -1', '100000'],
    [
      'sqlite, jq, ripgrep, zip, xz',
      'sqlite3 :memory: "select 1" && echo "[2]" | jq ".[0]" && echo three | rg -c three && zip -q z.zip a.c && unzip -l z.zip | grep -c a.c && xz -k a.c && echo 4',
      '1\n2\n1\n1\n4',
    ],
    [
      'curl, less, file, vim',
      'for p in curl less file vim.tiny ps free; do command -v $p >/dev/null || echo no $p; done',
      '',
    ],
  ])('%s', async (_what, command, output) => {
    expect(await sh(`mkdir -p /workspace/try && cd /workspace/try && ${command}`)).toBe(output)
  })
})
