/** Folders as tar streams, by the tar of this machine. */
import { Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import { hasCode } from '@sandlot/shared/base/errors'
import { BackupError } from './backup-error.ts'
import { startProgram } from './child-program.ts'

/** What tar says where a file has changed while it was read: the copy has it as it was. */
const CHANGED_WHILE_READ = 1

/** The output of `tar -c` with these arguments. Throws `BackupError` where tar fails. */
export async function* tarOf(args: readonly string[]): AsyncGenerator<Buffer> {
  const { child, ended } = startProgram('tar', ['--numeric-owner', '--format=posix', '-cf', '-', ...args])
  child.stdin.end()
  try {
    yield* child.stdout as AsyncIterable<Buffer>
  } finally {
    child.stdout.destroy()
  }
  const { code, said } = await ended
  if (code > CHANGED_WHILE_READ) throw failed(said)
}

/** Unpacks a tar stream into an existing folder. Throws `BackupError` where tar fails. */
export async function untar(folder: string, source: AsyncIterable<Uint8Array>): Promise<void> {
  const { child, ended } = startProgram('tar', ['-C', folder, '-xpf', '-'])
  child.stdout.resume()
  // tar may end before its input: it has seen the end in it, or it says why.
  const fed = await pipeline(Readable.from(source), child.stdin).then(
    () => undefined,
    (error: unknown) => ({ error }),
  )
  child.stdin.destroy()
  const { code, said } = await ended
  if (code !== 0) throw fed !== undefined && said === '' ? fed.error : failed(said)
  if (fed !== undefined && !hasCode(fed.error, 'EPIPE', 'ERR_STREAM_PREMATURE_CLOSE')) throw fed.error
}

function failed(said: string): BackupError {
  return /no space left/i.test(said)
    ? new BackupError('no_space', 'The disk is full.', 'Make room, or use another disk.')
    : new BackupError('failed', `tar failed: ${said}`, 'What it names must be readable for this user.')
}
