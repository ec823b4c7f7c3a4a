/**
 * The looser profile that an operator may grant: tracing one's own processes, as strace and gdb do.
 */

/**
 * Additions of the debug profile; the rest is the ordinary text. The kernel restricts tracing to
 * dumpable processes of the same user id, which sbxd and its shims are not. The filter checks a
 * call again after a tracer has changed it (since Linux 4.8), so tracing does not bypass it.
 * process_vm_writev and kcmp stay closed: gdb writes through ptrace, strace compares nothing by
 * default.
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

/** Derives the debug profile from an ordinary one; one line, as the engine expects. */
export function debugProfile(ordinary: string): string {
  const profile = JSON.parse(ordinary) as { syscalls?: unknown[] }
  return JSON.stringify({ ...profile, syscalls: [...(profile.syscalls ?? []), ...ADDITIONS] })
}
