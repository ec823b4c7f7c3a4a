/** Folders as tar streams, through the tar program. */
import { hasCode } from '@sandlot/shared/base/errors'
import { BackupError } from './backup-error.ts'
import { feed, outputOf, startProgram } from './child-program.ts'

/** Exit code of tar when a file changed while it was read. */
const CHANGED_WHILE_READ = 1

/** The output of `tar -c` with these arguments. Throws `BackupError` if tar fails. */
export async function* tarOf(args: readonly string[]): AsyncGenerator<Buffer> {
  const tar = startProgram('tar', ['--numeric-owner', '--format=posix', '-cf', '-', ...args])
  const { code, stderr } = yield* outputOf(tar)
  if (code > CHANGED_WHILE_READ) throw failed(stderr)
}

/** Unpacks a tar stream into an existing folder. Throws `BackupError` if tar fails. */
export async function untar(folder: string, source: AsyncIterable<Uint8Array>): Promise<void> {
  const tar = startProgram('tar', ['-C', folder, '-xpf', '-'])
  // tar may exit before the end of its input, at its end marker or on an error.
  const { code, stderr, broken } = await feed(tar, source)
  if (code !== 0) throw broken !== undefined && stderr === '' ? broken.error : failed(stderr)
  if (broken !== undefined && !hasCode(broken.error, 'EPIPE', 'ERR_STREAM_PREMATURE_CLOSE'))
    throw broken.error
}

function failed(stderr: string): BackupError {
  return /no space left/i.test(stderr)
    ? new BackupError('no_space', 'The disk is full.', 'Free space, or use another disk.')
    : new BackupError(
        'failed',
        `tar failed: ${stderr}`,
        'Make sure that this user can read the files that it names.',
      )
}
