/**
 * The debug profile in real sandboxes: whom it is granted to traces their own processes, never
 * process 1.
 */
import { afterAll, beforeAll, expect, test } from 'vitest'

import { LABEL } from '../../../src/names.ts'
import type { Sandbox } from '../../../src/sandbox.ts'
import type { Sandboxes } from '../../../src/controller/sandboxes.ts'
import { docker, dockerFixture, type DockerFixture, shell } from '../../support/docker-fixture.ts'

let fixture: DockerFixture
let sandboxes: Sandboxes
const granted = new Set(['developer'])
beforeAll(async () => {
  fixture = await dockerFixture()
  sandboxes = fixture.controller({
    profileFor: (userId) => (userId !== undefined && granted.has(userId) ? 'debug' : 'default'),
    pool: { size: 1, everyMs: 0, delayMs: 0 },
  })
  await sandboxes.poolFilled()
}, 120_000)
afterAll(() => fixture.dispose(), 120_000)

/**
 * Traces a child of its own like strace and gdb: attaches, reads a word of its memory and detaches.
 * Prints `name=value` lines, a value being `open` or an errno. The numbers of the calls differ by
 * architecture.
 */
const TRACER = String.raw`
use strict; $| = 1;
my $arm = -e '/lib/ld-linux-aarch64.so.1';
my ($ptrace, $read, $write, $kcmp, $personality) = $arm ? (117, 270, 271, 272, 92) : (101, 310, 311, 312, 135);
sub attempt { my ($name, @call) = @_; $! = 0; my $got = syscall(shift @call, @call); print "$name=", $got >= 0 ? 'open' : 0 + $!, "\n"; $got }
my $text = 'a secret of mine';
my $at = unpack('Q', pack('P', $text));
my $child = fork(); if (!$child) { $text = 'a secret of its'; sleep 300; exit 0 }
attempt('attach', $ptrace, 16, $child, 0, 0) >= 0 and waitpid($child, 0);
my $copy = "\0" x 8;
my $local = pack('QQ', unpack('Q', pack('P', $copy)), 8); my $remote = pack('QQ', $at, 8);
attempt('read', $read, $child, $local, 1, $remote, 1, 0); print "copy=$copy\n";
attempt('write', $write, $child, $local, 1, $remote, 1, 0);
attempt('kcmp', $kcmp, $$, $child, 0, 0, 0);
attempt('detach', $ptrace, 17, $child, 0, 0);
attempt('addresses', $personality, 0x40000); attempt('compatible', $personality, 8);
my $shim = getppid();
for (['first', 1], ['shim', $shim]) {
  my ($name, $pid) = @$_;
  attempt("$name attach", $ptrace, 16, $pid, 0, 0); attempt("$name seize", $ptrace, 0x4206, $pid, 0, 0);
  attempt("$name read", $read, $pid, $local, 1, $remote, 1, 0);
}
kill 9, $child;
`

const EPERM = '1'
async function trace(sandbox: Sandbox): Promise<Record<string, string>> {
  const { output } = await shell(sandbox, `exec perl -e '${TRACER.replaceAll("'", `'\\''`)}'`)
  return Object.fromEntries(
    output
      .replaceAll('\0', '')
      .trim()
      .split('\n')
      .map((line) => line.split('=', 2)),
  )
}
const OF_SUPERVISOR = Object.fromEntries(
  ['first', 'shim'].flatMap((whose) => ['attach', 'seize', 'read'].map((how) => [`${whose} ${how}`, EPERM])),
)
const profileOf = (id: string): Promise<string> =>
  docker('inspect', '-f', `{{index .Config.Labels "${LABEL.profile}"}}`, id)

test('whom it is granted to traces their own processes, and neither the supervisor nor its shims', async () => {
  const sandbox = await sandboxes.acquire('developer')
  expect(await profileOf(sandbox.id)).toBe('debug')
  expect(await trace(sandbox)).toEqual({
    attach: 'open',
    read: 'open',
    copy: 'a secret',
    detach: 'open',
    addresses: 'open',
    write: EPERM,
    kcmp: EPERM,
    compatible: EPERM,
    ...OF_SUPERVISOR,
  })
  expect(
    (await shell(sandbox, 'grep -E "^(Cap(Eff|Bnd)|NoNewPrivs|Seccomp):" /proc/self/status')).output,
  ).toMatch(/^CapEff:\s0+\nCapBnd:\s0+\nNoNewPrivs:\s1\nSeccomp:\s2\n$/)
  expect((await shell(sandbox, 'head -c1 /proc/1/mem || head -c1 /proc/$PPID/mem')).code).not.toBe(0)
})

test('a command that makes the supervisor its tracer ends, and the next one works', async () => {
  const sandbox = await sandboxes.acquire('developer')
  const traceMe = `syscall(-e "/lib/ld-linux-aarch64.so.1" ? 117 : 101, 0, 0, 0, 0) == 0 or die`
  expect(await shell(sandbox, `exec perl -e '${traceMe}; exec "true"'`)).toMatchObject({ signal: 'SIGKILL' })
  // Left behind, so that process 1 or the shim has become its parent.
  const orphan = `exit 0 if fork; select undef, undef, undef, 0.01 while getppid() != 1 && $n++ < 50; ${traceMe}; exec "sleep", "300"`
  await shell(sandbox, `perl -e '${orphan}'; true`)
  expect(await shell(sandbox, 'echo works')).toMatchObject({ code: 0, output: 'works\n' })
  await sandboxes.reset('developer')
  expect((await shell(sandbox, 'pgrep -c sleep')).output).toBe('0\n')
})

test('others have the ordinary one, and the warm sandboxes are theirs alone', async () => {
  const sandbox = await sandboxes.acquire('somebody')
  expect(await profileOf(sandbox.id)).toBe('')
  const answers = await trace(sandbox)
  expect(answers).toMatchObject({
    attach: EPERM,
    read: EPERM,
    write: EPERM,
    addresses: EPERM,
    ...OF_SUPERVISOR,
  })
})

test('a grant that has changed counts from the next start on, and the files stay', async () => {
  const before = await sandboxes.acquire('changing')
  await before.files.write('kept', Buffer.from('mine'))
  granted.add('changing')
  expect((await sandboxes.acquire('changing')).id).toBe(before.id)
  await sandboxes.stop('changing')
  const after = await sandboxes.acquire('changing')
  expect(await profileOf(after.id)).toBe('debug')
  expect(Buffer.from(await after.files.read('kept')).toString()).toBe('mine')
  granted.delete('changing')
  await sandboxes.stop('changing')
  expect(await profileOf((await sandboxes.acquire('changing')).id)).toBe('')
})
