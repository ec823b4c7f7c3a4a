/**
 * The looser profile that an operator may grant: tracing one's own processes, as strace and gdb do
 * it.
 */

/**
 * What the debug profile has beyond the ordinary one; everything else is the same text. Who may be
 * traced the kernel decides: a process of the same user id that is dumpable, which sbxd and its
 * shims are not. The filter is asked again about a call that a tracer has changed (since Linux
 * 4.8), so that tracing is no way round it. process_vm_writev and kcmp stay closed: gdb writes
 * through ptrace, strace compares nothing by default.
 */
const ADDITIONS = [
  { names: ['ptrace', 'process_vm_readv'], action: 'SCMP_ACT_ALLOW' },
  {
    comment: 'personality: ADDR_NO_RANDOMIZE, so that gdb sees the same addresses each time',
    names: ['personality'],
    action: 'SCMP_ACT_ALLOW',
    args: [{ index: 0, value: 0xffff_ffff, valueTwo: 0x004_0000, op: 'SCMP_CMP_MASKED_EQ' }],
  },
]

/**
 * The debug profile that belongs to the text of an ordinary one; one line, as the engine wants it.
 */
export function debugProfile(ordinary: string): string {
  const profile = JSON.parse(ordinary) as { syscalls?: unknown[] }
  return JSON.stringify({ ...profile, syscalls: [...(profile.syscalls ?? []), ...ADDITIONS] })
}
