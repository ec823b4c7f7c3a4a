/**
 * The proof: what a real sandbox says when it tries what must not be possible. Run once for every kind of sandbox before
 * the first command of a person, and by `./sandlot doctor`.
 */
import { randomBytes } from 'node:crypto'

import type { SandboxBackend } from '../backend.ts'
import { SandboxError } from '../errors.ts'
import type { Sandbox } from '../sandbox.ts'
import { check, type Finding, isSafe } from './finding.ts'

const TIMEOUT_MS = 30_000

/**
 * Prints `name=value` lines. Only /usr is used, which is read-only, and perl without modules. A system call's value is
 * `open` when it succeeded, else its errno: on a kernel without our filter io_uring_setup(1, 0) says EFAULT, AF_VSOCK
 * succeeds in a virtual machine, and ptrace of process 1 says EPERM with and without it, so a child of our own is
 * asked as well.
 */
const SCRIPT = String.raw`
use strict;
sub say1 { print "$_[0]=$_[1]\n" }
sub errno { return $!{EPERM} ? 'EPERM' : $!{EACCES} ? 'EACCES' : $!{ENOSYS} ? 'ENOSYS' : $!{EROFS} ? 'EROFS' : 'errno ' . ($! + 0) }
sub attempt { my ($name, @call) = @_; $! = 0; my $got = syscall(shift @call, @call); say1($name, $got >= 0 ? 'open' : errno()) }
open(my $status, '<', '/proc/self/status') or die "status: $!";
while (<$status>) { say1($1, $2) if /^(Seccomp|NoNewPrivs|CapInh|CapPrm|CapEff|CapBnd|CapAmb|Uid):\s+(\S+)/ }
my $arm = -e '/lib/ld-linux-aarch64.so.1';
attempt('io_uring', 425, 1, 0);
attempt('userfaultfd', $arm ? 282 : 323, 1);
attempt('unshare', $arm ? 97 : 272, 0x10000000);
my $child = fork(); if (!$child) { sleep 5; exit 0 }
attempt('ptrace', $arm ? 117 : 101, 16, $child, 0, 0); kill 9, $child; waitpid($child, 0);
$! = 0; my $vsock = syscall($arm ? 198 : 41, 40, 1, 0); say1('vsock', $vsock >= 0 ? 'open' : errno());
$! = 0; say1('root', open(my $f, '>', '/sandlot-probe') ? 'open' : errno());
$! = 0; say1('fds_of_1', opendir(my $d, '/proc/1/fd') ? 'open' : errno());
open(my $comm, '<', '/proc/1/comm'); my $name = <$comm>; chomp $name; say1('init', $name);
open(my $net, '<', '/proc/net/dev'); my @links; while (<$net>) { push @links, $1 if /^\s*([^\s:|]+):/ } say1('links', join ',', @links);
open(my $version, '<', '/proc/version'); my $kernel = <$version>; chomp $kernel; say1('kernel', $kernel);
`

/** What the script found, by name. */
export type Proof = ReadonlyMap<string, string>

/** Let a sandbox try. Rejects with a `SandboxError` when it cannot even be asked. */
export async function probeSandbox(sandbox: Sandbox): Promise<Proof> {
  const command = await sandbox.run({
    id: randomBytes(16).toString('hex'),
    command: ['/usr/bin/perl', '-MErrno', '-e', SCRIPT],
    env: { PERL5LIB: '', PERL5OPT: '', LD_PRELOAD: '' },
    timeoutMs: TIMEOUT_MS,
    merge: true,
    autoAcknowledge: true,
  })
  const pieces: Uint8Array[] = []
  for await (const chunk of command.output) pieces.push(chunk.data)
  const exit = await command.exit
  const text = Buffer.concat(pieces).toString()
  if (exit.code !== 0)
    throw new SandboxError(
      'unsafe_host',
      `The proof of a new sandbox did not finish: ${text.slice(-500) || exit.cause}.`,
    )
  return new Map(
    text.split('\n').flatMap((line): [string, string][] => {
      const at = line.indexOf('=')
      return at < 0 ? [] : [[line.slice(0, at), line.slice(at + 1)]]
    }),
  )
}

const CLOSED = ['EPERM', 'EACCES', 'ENOSYS', 'EROFS']

/** What a proof means. Every finding is a `must`. A value that is missing counts as failed. */
export function judgeProof(proof: Proof): Finding[] {
  const of = (name: string): string => proof.get(name) ?? 'not said'
  const closed = (name: string): boolean => CLOSED.includes(of(name))
  const sentry = of('kernel').includes('gvisor')
  const caps = ['CapInh', 'CapPrm', 'CapEff', 'CapBnd', 'CapAmb']
  const open = ['io_uring', 'userfaultfd', 'unshare', 'ptrace', 'vsock'].filter((name) =>
    // gVisor is a kernel of its own in user space: what it offers reaches no host kernel, and it applies no profile.
    sentry ? name === 'io_uring' && !closed(name) : !closed(name),
  )
  return [
    check('must', 'seccomp', 'System call filter', sentry || of('Seccomp') === '2', {
      ok: sentry ? 'gVisor answers system calls itself' : 'active',
      bad: `commands run without one (Seccomp: ${of('Seccomp')})`,
      fix: 'Use an engine built with seccomp on a kernel with CONFIG_SECCOMP_FILTER, and let no one set seccomp=unconfined.',
    }),
    check('must', 'seccomp-profile', 'Sandlot’s own profile', open.length === 0, {
      ok: 'what it closes is closed',
      bad: `open in a sandbox: ${open.map((name) => `${name} (${of(name)})`).join(', ')}`,
      fix: 'The engine does not apply the profile that is sent with each container: update it, or the runtime.',
    }),
    check('must', 'no-new-privileges', 'No new privileges', of('NoNewPrivs') === '1' || sentry, {
      ok: 'set-uid files change nothing',
      bad: 'a set-uid file would give its rights to a command',
      fix: 'Update the container runtime: it ignores no-new-privileges.',
    }),
    check(
      'must',
      'capabilities',
      'Capabilities',
      caps.every((name) => /^0+$/.test(of(name))),
      {
        ok: 'none',
        bad: `a command holds some (${caps.map((name) => `${name} ${of(name)}`).join(', ')})`,
        fix: 'Update the engine: it adds capabilities that it was told to drop.',
      },
    ),
    // EACCES alone would only say that an ordinary user may not write there.
    check('must', 'read-only-root', 'Image', of('root') === 'EROFS' || (sentry && closed('root')), {
      ok: 'read-only',
      bad: `it is not mounted read-only (writing to it says: ${of('root')})`,
      fix: 'The engine ignores ReadonlyRootfs; use another engine or runtime.',
    }),
    check('must', 'network', 'Network', of('links') === 'lo', {
      ok: 'only the loopback of its own',
      bad: `a sandbox has other interfaces: ${of('links')}`,
      fix: 'The engine ignores NetworkMode none; remove what attaches networks to containers behind its back.',
    }),
    check('must', 'supervisor', 'First process', of('init') === 'sbxd', {
      ok: 'sbxd',
      bad: `${of('init')} instead of sbxd`,
      fix: 'Something wraps the entrypoint: set no --init and no default-init on the engine for these containers.',
    }),
    check('must', 'supervisor-closed', 'The supervisor’s descriptors', closed('fds_of_1'), {
      ok: 'closed to commands',
      bad: 'a command can look into them',
      fix: 'The kernel or the runtime ignores PR_SET_DUMPABLE: use another runtime.',
    }),
  ]
}

/** Throws `unsafe_host` where a sandbox proves that commands must not run. Says everything that is wrong at once. */
export async function requireProof(sandbox: Sandbox): Promise<void> {
  const findings = judgeProof(await probeSandbox(sandbox))
  if (isSafe(findings)) return
  const failed = findings.filter(({ state }) => state === 'failed')
  throw new SandboxError(
    'unsafe_host',
    `Sandboxes on this machine do not hold what they promise, so no command runs in them: ${failed
      .map(({ name, message }) => `${name}: ${message}`)
      .join('; ')}. "./sandlot doctor" says how to mend it.`,
  )
}

/** Lets a sandbox prove what it holds before it is handed out. Rejects with a `SandboxError`: `unsafe_host`. */
export type Prove = (sandbox: Sandbox) => Promise<void>

/**
 * One controller makes all its sandboxes alike, so the first one proves it for all; a failure is not remembered. A
 * backend that says that it isolates nothing has nothing to prove.
 */
export function proveOnce(backend: Pick<SandboxBackend, 'capabilities'>): Prove {
  let proved: Promise<void> | undefined
  const prove = async (sandbox: Sandbox): Promise<void> => {
    if ((await backend.capabilities()).isolates) await requireProof(sandbox)
  }
  return (sandbox) => {
    proved ??= prove(sandbox).catch((error: unknown) => {
      proved = undefined
      throw error
    })
    return proved
  }
}
