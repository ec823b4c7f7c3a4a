/** Words for tar, the same on every backend, so that a copy of one can be restored on another. */

/** Exit code of tar for a file that changed while it was read: the copy has it as it was. */
export const CHANGED_WHILE_READ = 1

/** Arguments that copy `folder` to stdout, or unpack stdin into it. */
export function tarArguments(act: 'read' | 'write', folder: string): string[] {
  const how = act === 'read' ? ['--format=posix', '-cf', '-', '.'] : ['-xpf', '-']
  return ['-C', folder, '--numeric-owner', ...how]
}
