/** What a failing store means for the people in a chat. Paths and causes are the operator's: they are in the log. */
import { SandlotError } from '@sandlot/shared/errors'
import { StorageError, type StorageErrorCode } from '@sandlot/storage/storage-error'

const WORDS: Partial<Record<StorageErrorCode, ConstructorParameters<typeof SandlotError>>> = {
  full: [
    'not_ready',
    'Nothing can be saved: the disk of the server is full. Whoever runs Sandlot must make room.',
  ],
  locked: [
    'not_ready',
    'Nothing can be saved just now: another program holds the database. Try again in a moment.',
  ],
  io: [
    'not_ready',
    'Nothing can be saved: the disk of the server does not take it. Whoever runs Sandlot must look.',
  ],
  corrupt: [
    'internal',
    'This chat cannot be opened: something in it is damaged. Other chats are not affected.',
  ],
  not_owner: ['conflict', 'This chat goes on in another place. Open it again.'],
}

/** A `StorageError` in plain words; anything else as it is. */
export function inPlainWords(thrown: unknown): unknown {
  const words = thrown instanceof StorageError ? WORDS[thrown.code] : undefined
  return words === undefined ? thrown : new SandlotError(words[0], words[1], { cause: thrown })
}
