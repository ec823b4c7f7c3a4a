/**
 * Isolation proof: a real sandbox tries what must be impossible. Run once for every kind of sandbox
 * before a user's first command, and by `./sandlot doctor`.
 */
import type { ForbiddenAddress, SandboxBackend, SandboxProfile } from '../backend.ts'
import { collect } from '../sbxd/collect.ts'
import { SandboxError } from '../errors.ts'
import type { Sandbox } from '../sandbox.ts'
import type { ConnectedSandbox } from '../sbxd/client.ts'
import { check, type Finding, isSafe } from '#shared/base/finding'

const TIMEOUT_MS = 30_000

/** Begins both scripts. They print `name=value` lines, and use only /usr, which is read-only. */
const HEAD = String.raw`
use strict;
my $arm = -e '/lib/ld-linux-aarch64.so.1';
sub say1 { print "$_[0]=$_[1]\n" }
`

/**
 * Tries the kernel and the container, in perl without modules. A system call's value is `open` when
 * it succeeded, else its errno: on a kernel without our filter io_uring_setup(1, 0) returns EFAULT,
 * AF_VSOCK succeeds in a virtual machine, and ptrace of process 1 returns EPERM with and without
 * it, so a child of our own is tried as well. The lines from `kernel` on are for gVisor, whose
 * /proc has fewer fields: its log's first record, the same facts by prctl(2) and mount table, and
 * the ways to a key in the memory of process 1.
 */
const ATTACKS = String.raw`
sub errno { return $!{EPERM} ? 'EPERM' : $!{EACCES} ? 'EACCES' : $!{ENOSYS} ? 'ENOSYS' : $!{EROFS} ? 'EROFS' : 'errno ' . ($! + 0) }
sub attempt { my ($name, @call) = @_; $! = 0; my $got = syscall(shift @call, @call); say1($name, $got >= 0 ? 'open' : errno()) }
open(my $status, '<', '/proc/self/status') or die "status: $!";
while (<$status>) { say1($1, $2) if /^(Seccomp|NoNewPrivs|CapInh|CapPrm|CapEff|CapBnd|CapAmb|Uid):\s+(\S+)/ }
attempt('io_uring', 425, 1, 0);
attempt('userfaultfd', $arm ? 282 : 323, 1);
attempt('unshare', $arm ? 97 : 272, 0x10000000);
defined(my $child = fork()) or die "fork: $!"; if (!$child) { sleep 5; exit 0 }
attempt('ptrace', $arm ? 117 : 101, 16, $child, 0, 0); attempt('process_vm_writev', $arm ? 271 : 311, $child, 0, 0, 0, 0, 0); kill 9, $child; waitpid($child, 0);
$! = 0; my $vsock = syscall($arm ? 198 : 41, 40, 1, 0); say1('vsock', $vsock >= 0 ? 'open' : errno());
$! = 0; say1('root', open(my $f, '>', '/sandlot-probe') ? 'open' : errno());
$! = 0; say1('fds_of_1', opendir(my $d, '/proc/1/fd') ? 'open' : errno());
$! = 0; say1('relay', open(my $relay, '<', '/usr/lib/sandlot/sbxd') ? 'open' : errno());
open(my $comm, '<', '/proc/1/comm'); my $name = <$comm>; chomp $name; say1('init', $name);
open(my $net, '<', '/proc/net/dev'); my @links; while (<$net>) { push @links, $1 if /^\s*([^\s:|]+):/ } say1('links', join ',', @links);
open(my $version, '<', '/proc/version'); my $kernel = <$version>; chomp $kernel; say1('kernel', $kernel);
my $log = "\0" x 4096; $! = 0; say1('log', syscall($arm ? 116 : 103, 3, $log, 4096) >= 0 && $log =~ /^(?:<\d+>)?(\[ *[\d.]+\] [^\n\0]*)/ ? $1 : errno());
say1('nnp', syscall($arm ? 167 : 157, 39, 0, 0, 0, 0));
my $mount = ''; open(my $mounts, '<', '/proc/self/mounts'); while (<$mounts>) { my @field = split ' '; $mount = $field[3] if $field[1] eq '/' } say1('root_mount', $mount);
$! = 0; say1('memory_of_1', open(my $memory, '<', '/proc/1/mem') ? 'open' : errno());
attempt('trace_1', $arm ? 117 : 101, 16, 1, 0, 0);
`

/**
 * Tries all addresses at once, for 1.5 s at most; a refused connection is an answer too. Answers
 * that came while it was starved of CPU count. Starts no process.
 */
const ADDRESSES = String.raw`
require Socket; my (@answered, @asked);
for my $place (@ARGV) {
  my ($kind, $host, $port, $name) = split ' ', $place, 4;
  my $family = $host =~ /:/ ? Socket::AF_INET6() : Socket::AF_INET();
  my $address = Socket::inet_pton($family, $host) or die "address $host";
  socket(my $socket, $family, ($kind eq 'udp' ? Socket::SOCK_DGRAM() : Socket::SOCK_STREAM()) | Socket::SOCK_NONBLOCK(), 0) or ($!{ENOMEM} || $!{ENOBUFS} || $!{ENFILE} ? die "socket: $!" : next);
  my $to = $family == Socket::AF_INET() ? Socket::pack_sockaddr_in($port, $address) : Socket::pack_sockaddr_in6($port, $address);
  $! = 0; my $done = connect($socket, $to);
  if ($kind eq 'udp') { next unless $done; syswrite($socket, pack('n6', 1, 256, 1, 0, 0, 0) . "\0\0\2\0\1") }
  elsif ($done || $!{ECONNREFUSED}) { push @answered, $name; next }
  elsif (!$!{EINPROGRESS}) { next }
  push @asked, [$socket, $kind, $name];
}
my $until = time1() + 1.5; sub time1 { my $now = pack('q2', 0, 0); syscall($arm ? 113 : 228, 1, $now); my ($s, $n) = unpack('q2', $now); return $s + $n / 1e9 }
while (@asked) {
  my $left = $until - time1(); $left = 0 if $left < 0;
  my ($reads, $writes) = ('', '');
  for (@asked) { if ($_->[1] eq 'udp') { vec($reads, fileno($_->[0]), 1) = 1 } else { vec($writes, fileno($_->[0]), 1) = 1 } }
  last if select(my $readable = $reads, my $writable = $writes, undef, $left) <= 0;
  my @waiting;
  for (@asked) {
    my ($socket, $kind, $name) = @$_;
    if (!vec($kind eq 'udp' ? $readable : $writable, fileno($socket), 1)) { push @waiting, $_; next }
    if ($kind eq 'udp') { $! = 0; my $got = sysread($socket, my $answer, 512); push @answered, $name if $got || $!{ECONNREFUSED} }
    else { $! = unpack('i', getsockopt($socket, Socket::SOL_SOCKET(), Socket::SO_ERROR())); push @answered, $name if $! == 0 || $!{ECONNREFUSED} }
  }
  @asked = @waiting;
}
say1('answered', join ',', @answered);
`

/** Results of the script, by name. */
type Proof = ReadonlyMap<string, string>

/**
 * Runs the attacks, and with `addresses` tries those. Rejects with a `SandboxError` when that
 * cannot run to its end: `timeout`, `engine_unavailable` or one of `collect`.
 */
export function probeSandbox(sandbox: Sandbox, addresses: readonly ForbiddenAddress[] = []): Promise<Proof> {
  return runScript(sandbox, addresses.length === 0 ? ATTACKS : ATTACKS + ADDRESSES, addresses)
}

async function runScript(
  sandbox: Sandbox,
  script: string,
  addresses: readonly ForbiddenAddress[],
): Promise<Proof> {
  const places = addresses.map(
    ({ name, host, port, udp }) => `${udp ? 'udp' : 'tcp'} ${host} ${port} ${name}`,
  )
  const { code, cause, stdout } = await collect(sandbox, {
    command: ['/usr/bin/perl', '-MErrno', '-e', HEAD + script, ...places],
    env: { PERL5LIB: '', PERL5OPT: '', LD_PRELOAD: '' },
    timeoutMs: TIMEOUT_MS,
    merge: true,
  })
  if (code !== 0)
    throw new SandboxError(
      cause === 'timeout' ? 'timeout' : 'engine_unavailable',
      `The proof of a sandbox did not finish (${cause}): ${stdout.slice(-500).trim() || 'no output'}. Try again; if it persists, look at the load of its host.`,
    )
  return new Map(
    stdout.split('\n').flatMap((line): [string, string][] => {
      const at = line.indexOf('=')
      return at < 0 ? [] : [[line.slice(0, at), line.slice(at + 1)]]
    }),
  )
}

const CLOSED = ['EPERM', 'EACCES', 'ENOSYS', 'EROFS']

/** First record of the log of gVisor's kernel, in every version. */
const GVISOR_LOG = /^\[ *0\.000000\] Starting gVisor\.\.\.$/

/**
 * Judges a proof. Every finding is a `must`, except one on gVisor. A missing value counts as
 * failed.
 *
 * gVisor is recognized by its kernel log alone: our filter refuses syslog(2), and where it is
 * missing, the first record of a Linux log is Linux's own; the proof runs before the first command
 * of a user. gVisor's version line looks like Linux.
 *
 * With the debug profile a sandbox may trace its own processes; nothing else differs.
 */
export function judgeProof(proof: Proof, profile: SandboxProfile = 'default'): Finding[] {
  return [
    ...(GVISOR_LOG.test(proof.get('log') ?? '') ? judgeSentry(proof) : judgeLinux(proof, profile)),
    ...judgeSurroundings(proof),
  ]
}

const of = (proof: Proof, name: string): string => proof.get(name) ?? 'not said'
const closed = (proof: Proof, name: string): boolean => CLOSED.includes(of(proof, name))
const CAPABILITIES = ['CapInh', 'CapPrm', 'CapEff', 'CapBnd', 'CapAmb']

const ALWAYS_CLOSED = ['io_uring', 'userfaultfd', 'unshare', 'vsock']
const CLOSED_IN = { default: ['ptrace'], debug: ['trace_1', 'process_vm_writev'] } as const

/** Requirements on the host's own kernel. */
function judgeLinux(proof: Proof, profile: SandboxProfile): Finding[] {
  const open = [...ALWAYS_CLOSED, ...CLOSED_IN[profile]].filter((name) => !closed(proof, name))
  return [
    check('must', 'seccomp', 'System call filter', of(proof, 'Seccomp') === '2', {
      ok: 'active',
      bad: `commands run without one (Seccomp: ${of(proof, 'Seccomp')})`,
      fix: 'Use an engine built with seccomp on a kernel with CONFIG_SECCOMP_FILTER, and let no one set seccomp=unconfined.',
    }),
    check('must', 'seccomp-profile', 'Sandlot’s own profile', open.length === 0, {
      ok: 'what it closes is closed',
      bad: `open in a sandbox: ${open.map((name) => `${name} (${of(proof, name)})`).join(', ')}`,
      fix: 'Rebuild the sandbox image, whose sbxd loads the profile itself; or update the engine or the runtime, which ignores the one that is sent with each container.',
    }),
    judgePrivileges(of(proof, 'NoNewPrivs') === '1'),
    judgeCapabilities(proof, CAPABILITIES),
    // EACCES alone only shows that an ordinary user may not write there.
    judgeRoot(proof, of(proof, 'root') === 'EROFS'),
    check('must', 'supervisor-closed', 'The supervisor’s descriptors', closed(proof, 'fds_of_1'), {
      ok: 'closed to commands',
      bad: 'a command can look into them',
      fix: 'The kernel or the runtime ignores PR_SET_DUMPABLE: use another runtime.',
    }),
  ]
}

/**
 * Requirements on gVisor, a kernel in user space: its interfaces reach no host kernel, and it
 * applies no profile. It has no ambient capabilities, checks a file's owner before its mount, and
 * for a process that may not be traced closes only the memory, not the descriptors.
 */
function judgeSentry(proof: Proof): Finding[] {
  const keyed = closed(proof, 'memory_of_1') && closed(proof, 'trace_1')
  const named = CAPABILITIES.filter((name) => name !== 'CapAmb' || proof.has(name))
  const vsock = of(proof, 'vsock')
  return [
    check('must', 'seccomp', 'System call filter', true, {
      ok: 'gVisor answers system calls itself',
      bad: '',
      fix: '',
    }),
    check('must', 'seccomp-profile', 'Sandlot’s own profile', CLOSED.includes(vsock) || vsock === NO_FAMILY, {
      ok: 'not needed: gVisor passes nothing on to the host',
      bad: `gVisor lets a sandbox reach the machine around it: vsock (${vsock})`,
      fix: 'Let runsc pass no sockets on to the host: --network=none or sandbox.',
    }),
    judgePrivileges(of(proof, 'nnp') === '1'),
    judgeCapabilities(proof, named),
    judgeRoot(proof, closed(proof, 'root') && of(proof, 'root_mount').split(',').includes('ro')),
    keyed
      ? check('warn', 'supervisor-closed', 'The supervisor’s descriptors', closed(proof, 'fds_of_1'), {
          ok: 'closed to commands',
          bad: 'a command can write into the stream of its own sandbox, and so forge what commands there answered; the key stays closed',
          fix: 'gVisor opens the descriptors of every process of the same user; with runc they are closed.',
        })
      : check('must', 'supervisor-closed', 'The supervisor’s memory', false, {
          ok: '',
          bad: 'a command can look into it',
          fix: 'This gVisor ignores PR_SET_DUMPABLE: update it.',
        }),
  ]
}

/** EAFNOSUPPORT: no such sockets. */
const NO_FAMILY = 'errno 97'

function judgePrivileges(holds: boolean): Finding {
  return check('must', 'no-new-privileges', 'No new privileges', holds, {
    ok: 'set-uid files change nothing',
    bad: 'a set-uid file would give its rights to a command',
    fix: 'Update the container runtime: it ignores no-new-privileges.',
  })
}

function judgeCapabilities(proof: Proof, names: readonly string[]): Finding {
  const none = names.every((name) => /^0+$/.test(of(proof, name)))
  return check('must', 'capabilities', 'Capabilities', none, {
    ok: 'none',
    bad: `a command holds some (${names.map((name) => `${name} ${of(proof, name)}`).join(', ')})`,
    fix: 'Update the engine: it adds capabilities that it was asked to drop.',
  })
}

function judgeRoot(proof: Proof, holds: boolean): Finding {
  return check('must', 'read-only-root', 'Image', holds, {
    ok: 'read-only',
    bad: `it is not mounted read-only (writing to it says: ${of(proof, 'root')})`,
    fix: 'The engine ignores ReadonlyRootfs; use another engine or runtime.',
  })
}

/** By what answered, where addresses were tried: interfaces may exist, and be down. */
function judgeNetwork(proof: Proof): Finding {
  const answered = proof.get('answered')
  if (answered !== undefined)
    return check('must', 'network', 'Network', answered === '', {
      ok: 'nothing answers a sandbox',
      bad: `a sandbox gets an answer from ${answered.replaceAll(',', ', ')}`,
      fix: 'Set SANDLOT_KUBERNETES_NETWORK_DOWN=true, or use a network plug-in that enforces the chart’s NetworkPolicies.',
    })
  return check('must', 'network', 'Network', of(proof, 'links') === 'lo', {
    ok: 'only the loopback of its own',
    bad: `a sandbox has other interfaces: ${of(proof, 'links')}`,
    fix: 'The engine ignores NetworkMode none; remove the program that attaches networks to its containers.',
  })
}

/** Only where the stream goes through a relay, as where addresses are tried. */
function judgeRelay(proof: Proof): Finding[] {
  if (!proof.has('answered')) return []
  return [
    check('must', 'relay', 'Relay', closed(proof, 'relay'), {
      ok: 'closed to commands',
      bad: `a command can open its file, and so the stream in its memory (${of(proof, 'relay')})`,
      fix: 'In the sandbox image, /usr/lib/sandlot/sbxd belongs to root with mode 0711: build it again from this version’s.',
    }),
  ]
}

function judgeSurroundings(proof: Proof): Finding[] {
  return [
    judgeNetwork(proof),
    ...judgeRelay(proof),
    check('must', 'supervisor', 'First process', of(proof, 'init') === 'sbxd', {
      ok: 'sbxd',
      bad: `${of(proof, 'init')} instead of sbxd`,
      fix: 'Something wraps the entrypoint: set no --init and no default-init on the engine for these containers.',
    }),
  ]
}

/**
 * Throws `unsafe_host` with every failed requirement. Where the proof did not run to its end,
 * rejects as `probeSandbox`.
 */
export async function requireProof(
  sandbox: Sandbox,
  profile?: SandboxProfile,
  addresses?: readonly ForbiddenAddress[],
): Promise<void> {
  requireSafe(judgeProof(await probeSandbox(sandbox, addresses), profile))
}

/**
 * Only the network can come up around a sandbox; the values of everything else may now be those of
 * a user's commands, such as a limit that they have reached.
 */
async function requireSilence(sandbox: Sandbox, addresses: readonly ForbiddenAddress[]): Promise<void> {
  const proof = await runScript(sandbox, ADDRESSES, addresses)
  if (!proof.has('answered'))
    throw new SandboxError('engine_unavailable', 'The proof of a sandbox has no result. Try again.')
  requireSafe([judgeNetwork(proof)])
}

function requireSafe(findings: readonly Finding[]): void {
  if (isSafe(findings)) return
  const failed = findings.filter(({ state }) => state === 'failed')
  throw new SandboxError(
    'unsafe_host',
    `Sandboxes on this machine do not hold what they promise, so no command runs in them: ${failed
      .map(({ name, message }) => `${name}: ${message}`)
      .join('; ')}. "./sandlot doctor" says how to mend it.`,
  )
}

/**
 * Runs the isolation proof of a sandbox, where it is due: before it is handed out, and with
 * `isAgain` for one that was, in which commands may run. Rejects with a `SandboxError`:
 * `unsafe_host`, or another code where the proof could not be made; `isAgain` is then due in a
 * minute.
 */
export type Prove = (sandbox: ProvedSandbox, profile: SandboxProfile, isAgain?: boolean) => Promise<void>

type ProvedSandbox = Sandbox & Pick<ConnectedSandbox, 'id' | 'bootId'>

/** Milliseconds after which what surrounds a sandbox may have changed. */
const AGAIN_MS = 600_000
/** Milliseconds after a repeated proof that could not be made. */
const RETRY_MS = 60_000

/**
 * A controller creates all sandboxes of one profile alike, so one proof is valid for all. If they
 * may have a network, each boot is proved separately, every ten minutes. A failure is not cached.
 * A backend without isolation needs no proof.
 */
export function createProve({ inventory }: Pick<SandboxBackend, 'inventory'>): Prove {
  const proved = new Map<string, { until: number; proof: Promise<void> }>()
  const isForAll = inventory.unreachable === undefined
  let isolates: boolean | undefined
  const prove: Prove = async (sandbox, profile, isAgain) => {
    isolates ??= (await inventory.capabilities()).isolates
    if (!isolates) return
    const addresses = await inventory.unreachable?.(sandbox.id)
    await (isAgain && addresses !== undefined
      ? requireSilence(sandbox, addresses)
      : requireProof(sandbox, profile, addresses))
  }
  return (sandbox, profile, isAgain = false) => {
    const now = performance.now()
    if (!isForAll) for (const [boot, { until }] of proved) if (now > until) proved.delete(boot)
    const key = isForAll ? profile : sandbox.bootId
    const known = proved.get(key)
    if (known !== undefined) return known.proof
    const proof = prove(sandbox, profile, isAgain).catch((error: unknown) => {
      if (isAgain && !isUnsafe(error))
        proved.set(key, { until: performance.now() + RETRY_MS, proof: Promise.resolve() })
      else proved.delete(key)
      throw error
    })
    proved.set(key, { until: now + AGAIN_MS, proof })
    return proof
  }
}

/** A proof has a value that is bad, in contrast to one that could not be made. */
export function isUnsafe(error: unknown): error is SandboxError {
  return error instanceof SandboxError && error.code === 'unsafe_host'
}
