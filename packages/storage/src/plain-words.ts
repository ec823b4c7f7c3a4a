/**
 * User-facing sentences for store failures. Paths and causes are for the operator: they are in the
 * log.
 */
import { SandlotError, messageOf } from '@sandlot/shared/base/errors'
import { StorageError, type StorageErrorCode } from './storage-error.ts'

type Words = Partial<Record<StorageErrorCode, ConstructorParameters<typeof SandlotError>>>

const SAVING: Words = {
  full: [
    'not_ready',
    'Nothing can be saved: the disk of the server is full. Its administrator must make room.',
  ],
  locked: [
    'not_ready',
    'Nothing can be saved just now: another program holds the database. Try again in a moment.',
  ],
  io: [
    'not_ready',
    'Nothing can be saved: the disk of the server refuses writes. Its administrator must check it.',
  ],
  unreachable: [
    'not_ready',
    'Nothing can be saved just now: the database cannot be reached. If this persists, the administrator must check it.',
  ],
}

const IN_CHATS: Words = {
  ...SAVING,
  corrupt: [
    'internal',
    'This chat cannot be opened: something in it is damaged. Other chats are not affected.',
  ],
  not_owner: ['not_owner', 'This chat is now open elsewhere. Open it again.'],
}

const AT_SIGN_IN: Words = {
  full: [
    'not_ready',
    'Signing in is not possible: the disk of the server is full. Its administrator must make room.',
  ],
  locked: [
    'not_ready',
    'Signing in is not possible just now: another program holds the accounts. Try again in a moment.',
  ],
  io: [
    'not_ready',
    'Signing in is not possible: the disk of the server refuses writes. Its administrator must check it.',
  ],
  unreachable: [
    'not_ready',
    'Signing in is not possible just now: the database cannot be reached. If this persists, the administrator must check it.',
  ],
  corrupt: [
    'not_ready',
    'Signing in is not possible: the accounts are damaged. The administrator must restore them from a backup.',
  ],
}

/** A `StorageError` of the chats in plain words; any other error unchanged. */
export function toUserError(thrown: unknown): unknown {
  return inWords(thrown, IN_CHATS)
}

/** The same for the accounts. */
export function toAccountUserError(thrown: unknown): unknown {
  return inWords(thrown, AT_SIGN_IN)
}

function inWords(thrown: unknown, all: Words): unknown {
  const words = thrown instanceof StorageError ? all[thrown.code] : undefined
  return words === undefined ? thrown : new SandlotError(words[0], words[1], { cause: thrown })
}

/** For the public `/readyz`: an unusable store, without its path. */
export function healthText(problem: StorageError | undefined): string {
  if (problem === undefined) return 'can be read and written'
  if (problem.code === 'full') return 'cannot be written: the disk is full; make room'
  if (problem.code === 'corrupt') return 'is damaged: stop Sandlot, and restore the file from a backup'
  if (problem.code === 'unreachable') return 'cannot be reached: check that PostgreSQL is running'
  return 'cannot be read or written: the disk refuses it'
}

/**
 * One sentence with the reason that a process cannot start, if its files cause it; else undefined.
 */
export function startProblem(thrown: unknown): string | undefined {
  if (thrown instanceof StorageError) return thrown.message
  if (!(thrown instanceof Error) || !('code' in thrown)) return undefined
  const file = 'path' in thrown && typeof thrown.path === 'string' ? thrown.path : 'A file'
  switch (thrown.code) {
    case 'ENOSPC':
    case 'EDQUOT':
      return `${file} cannot be written: there is no space left on its disk; make room.`
    case 'EIO':
    case 'EFBIG':
      return `${file} cannot be read or written: its disk refuses it (${messageOf(thrown)}).`
    case 'EACCES':
    case 'EPERM':
    case 'EROFS':
      return `${file} cannot be written by this user (${messageOf(thrown)}). Set SANDLOT_DATA to a folder that can.`
    default:
      return undefined
  }
}
