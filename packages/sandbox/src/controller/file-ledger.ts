import {
  closeSync,
  fsync,
  mkdirSync,
  openSync,
  readFileSync,
  renameSync,
  rmSync,
  writeFileSync,
} from 'node:fs'
import { dirname } from 'node:path'
import { promisify } from 'node:util'

import { z } from 'zod'

import { SerialQueue } from '#shared/async/serial-queue'
import { SandboxError } from '../errors.ts'
import { withFileLock } from './file-lock.ts'
import type { LedgerSlot, SandboxLedger } from '../ledger.ts'

const slotSchema = z.strictObject({
  slot: z.string().regex(/^[a-z0-9]{8}$/),
  state: z.enum(['warm', 'claimed', 'condemned']),
  userId: z.string().min(1).optional(),
  uid: z.int().positive(),
  volume: z.string().min(1),
  generation: z.int().nonnegative(),
  createdAt: z.int(),
  claimedAt: z.int().optional(),
})

const fileSchema = z.strictObject({
  version: z.literal(1),
  epoch: z.int().nonnegative(),
  slots: z.array(slotSchema),
})
type LedgerFile = z.infer<typeof fileSchema>

/**
 * A ledger in one JSON file, for a program that uses this package as a library. Every change is
 * read, made and written under a lock, to a temporary file that is synced and renamed, so a crash
 * leaves the old state or the new, and who only reads needs no lock. Rejects with `ledger` when the
 * file cannot be read, written or understood; it is never overwritten then.
 *
 * For a local disk: only the syncing happens in another thread, because each of the other calls
 * takes less time than the way there and back; without those ways a claim takes a quarter less. A
 * disk that hangs holds this process up until it goes on.
 */
export function createFileLedger(file: string): SandboxLedger {
  const queue = new SerialQueue()
  let hasFolder = false
  /**
   * The text that was found in order last: with a thousand slots, checking would be two thirds of a
   * look.
   */
  let checked: string | undefined

  function read(): LedgerFile {
    const text = readIfThere(file)
    if (text === undefined) return { version: 1, epoch: 0, slots: [] }
    if (text === checked) return JSON.parse(text) as LedgerFile
    const ledger = fileSchema.parse(JSON.parse(text))
    checked = text
    return ledger
  }

  /** One after the other in this process; the file lock is for other processes. */
  function inTurn<T>(work: () => Promise<T>): Promise<T> {
    return queue.run(async () => {
      try {
        return await work()
      } catch (error) {
        if (error instanceof SandboxError) throw error
        hasFolder = false
        throw new SandboxError('ledger', `The sandbox ledger ${file} cannot be used: ${describe(error)}`, {
          cause: error,
        })
      }
    })
  }

  const look = <T>(at: (slots: LedgerFile['slots']) => T): Promise<T> => inTurn(async () => at(read().slots))

  const transaction = <T>(change: (ledger: LedgerFile) => { result: T; write: boolean }): Promise<T> =>
    inTurn(async () => {
      if (!hasFolder) mkdirSync(dirname(file), { recursive: true, mode: 0o700 })
      hasFolder = true
      return withFileLock(file, async () => {
        const ledger = read()
        const { result, write } = change(ledger)
        if (write) await replace(file, `${JSON.stringify(ledger, null, 2)}\n`)
        return result
      })
    })

  return {
    find: (userId) => look((slots) => toSlot(slots.find((slot) => slot.userId === userId))),

    add: (slot, mostWarm) =>
      transaction((ledger) => {
        const taken = ledger.slots.find(
          (other) =>
            other.slot === slot.slot ||
            other.uid === slot.uid ||
            other.volume === slot.volume ||
            (slot.userId !== undefined && other.userId === slot.userId),
        )
        if (taken)
          throw new SandboxError(
            'exists',
            `Slot ${slot.slot}, uid ${slot.uid}, volume ${slot.volume} or their user is in the ledger already.`,
          )
        const warm = ledger.slots.filter((other) => other.state === 'warm').length
        if (slot.state === 'warm' && mostWarm !== undefined && warm >= mostWarm)
          throw new SandboxError('limit_reached', `There are ${warm} warm slots already.`)
        ledger.slots.push(slotSchema.parse(slot))
        return { result: undefined, write: true }
      }),

    claim: (name, userId) =>
      transaction((ledger) => {
        const theirs = ledger.slots.find((slot) => slot.userId === userId)
        if (theirs) return { result: toSlot(theirs), write: false }
        const slot = mustHave(ledger, name)
        if (slot.state !== 'warm')
          throw new SandboxError('exists', `Slot ${name} is ${slot.state}: it cannot be claimed.`)
        Object.assign(slot, {
          state: 'claimed',
          userId,
          claimedAt: Date.now(),
          generation: slot.generation + 1,
        } satisfies Partial<LedgerSlot>)
        return { result: toSlot(slot), write: true }
      }),

    condemn: (name) =>
      transaction((ledger) => {
        const slot = ledger.slots.find((candidate) => candidate.slot === name)
        if (slot?.state !== 'warm') return { result: slot?.state === 'condemned', write: false }
        slot.state = 'condemned'
        return { result: true, write: true }
      }),

    nextGeneration: (name, after) =>
      transaction((ledger) => {
        const slot = mustHave(ledger, name)
        const write = slot.generation <= after
        if (write) slot.generation = after + 1
        return { result: slot.generation, write }
      }),

    release: (name) =>
      transaction((ledger) => {
        const before = ledger.slots.length
        ledger.slots = ledger.slots.filter((slot) => slot.slot !== name)
        return { result: undefined, write: ledger.slots.length !== before }
      }),

    list: () => look((slots) => slots.map((slot) => toSlot(slot))),

    nextEpoch: (above = 0) =>
      transaction((ledger) => {
        ledger.epoch = Math.max(ledger.epoch + 1, above + 1, Date.now())
        return { result: ledger.epoch, write: true }
      }),
  }
}

function mustHave(ledger: LedgerFile, name: string): LedgerFile['slots'][number] {
  const slot = ledger.slots.find((candidate) => candidate.slot === name)
  if (!slot) throw new SandboxError('not_found', `Slot ${name} is not in the ledger.`)
  return slot
}

/** A copy without keys that are there and undefined. */
function toSlot(slot: LedgerFile['slots'][number]): LedgerSlot
function toSlot(slot: LedgerFile['slots'][number] | undefined): LedgerSlot | undefined
function toSlot(slot: LedgerFile['slots'][number] | undefined): LedgerSlot | undefined {
  if (!slot) return undefined
  const { userId, claimedAt, ...rest } = slot
  return {
    ...rest,
    userId,
    claimedAt,
  }
}

function readIfThere(file: string): string | undefined {
  try {
    return readFileSync(file, 'utf8')
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code === 'ENOENT') return undefined
    throw error
  }
}

async function replace(file: string, text: string): Promise<void> {
  const temporary = `${file}.new`
  try {
    await withOpen(temporary, 'w', (fd) => {
      writeFileSync(fd, text)
      return sync(fd)
    })
    renameSync(temporary, file)
    await withOpen(dirname(file), 'r', sync)
  } catch (error) {
    rmSync(temporary, { force: true })
    throw error
  }
}

const sync = promisify(fsync)

async function withOpen(path: string, flags: 'r' | 'w', work: (fd: number) => Promise<void>): Promise<void> {
  const fd = openSync(path, flags, 0o600)
  try {
    await work(fd)
  } finally {
    closeSync(fd)
  }
}

function describe(error: unknown): string {
  if (error instanceof z.ZodError)
    return `it is not in the expected form (${z.prettifyError(error)}). Restore it from a backup.`
  if (error instanceof SyntaxError) return `it is not JSON. Restore it from a backup.`
  return error instanceof Error ? error.message : String(error)
}
