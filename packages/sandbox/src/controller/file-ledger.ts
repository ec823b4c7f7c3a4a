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
type Ledger = z.infer<typeof fileSchema>

/**
 * A ledger in one JSON file, for a program that uses this package as a library. Rejects with
 * `ledger` when the file cannot be read, written or parsed; it is never overwritten then.
 *
 * For a local disk: only the sync runs in another thread. Every other call takes less time than a
 * round trip to one, and without those round trips a claim takes a quarter less. A hanging disk
 * blocks this process until it resumes.
 */
export function createFileLedger(path: string): SandboxLedger {
  const file = new LedgerFile(path)
  return {
    find: (userId) => file.read(({ slots }) => toSlot(slots.find((slot) => slot.userId === userId))),
    list: () => file.read(({ slots }) => slots.map((slot) => toSlot(slot))),
    add: (slot, mostWarm) => file.change((ledger) => addSlot(ledger, slot, mostWarm)),
    claim: (name, userId) => file.change((ledger) => claimSlot(ledger, name, userId)),

    condemn: (name) =>
      file.change((ledger) => {
        const slot = ledger.slots.find((candidate) => candidate.slot === name)
        if (slot?.state !== 'warm') return { result: slot?.state === 'condemned', write: false }
        slot.state = 'condemned'
        return { result: true, write: true }
      }),

    nextGeneration: (name, after) =>
      file.change((ledger) => {
        const slot = mustHave(ledger, name)
        const write = slot.generation <= after
        if (write) slot.generation = after + 1
        return { result: slot.generation, write }
      }),

    release: (name) =>
      file.change((ledger) => {
        const before = ledger.slots.length
        ledger.slots = ledger.slots.filter((slot) => slot.slot !== name)
        return { result: undefined, write: ledger.slots.length !== before }
      }),

    nextEpoch: (above = 0) =>
      file.change((ledger) => {
        ledger.epoch = Math.max(ledger.epoch + 1, above + 1, Date.now())
        return { result: ledger.epoch, write: true }
      }),
  }
}

interface Change<T> {
  result: T
  write: boolean
}

function addSlot(ledger: Ledger, slot: LedgerSlot, mostWarm: number | undefined): Change<void> {
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
}

function claimSlot(ledger: Ledger, name: string, userId: string): Change<LedgerSlot> {
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
}

function mustHave(ledger: Ledger, name: string): Ledger['slots'][number] {
  const slot = ledger.slots.find((candidate) => candidate.slot === name)
  if (!slot) throw new SandboxError('not_found', `Slot ${name} is not in the ledger.`)
  return slot
}

/** A copy without keys whose value is undefined. */
function toSlot(slot: Ledger['slots'][number]): LedgerSlot
function toSlot(slot: Ledger['slots'][number] | undefined): LedgerSlot | undefined
function toSlot(slot: Ledger['slots'][number] | undefined): LedgerSlot | undefined {
  if (!slot) return undefined
  const { userId, claimedAt, ...rest } = slot
  return {
    ...rest,
    userId,
    claimedAt,
  }
}

/**
 * Every change is read, made and written under a lock, to a temporary file that is synced and
 * renamed: a crash leaves the old state or the new one, and a reader needs no lock.
 */
class LedgerFile {
  readonly #path: string
  readonly #queue = new SerialQueue()
  #hasFolder = false
  /** The last text that was valid: with a thousand slots, validation is two thirds of a read. */
  #valid: string | undefined

  constructor(path: string) {
    this.#path = path
  }

  read<T>(select: (ledger: Ledger) => T): Promise<T> {
    return this.#inTurn(async () => select(this.#load()))
  }

  change<T>(change: (ledger: Ledger) => Change<T>): Promise<T> {
    return this.#inTurn(async () => {
      if (!this.#hasFolder) mkdirSync(dirname(this.#path), { recursive: true, mode: 0o700 })
      this.#hasFolder = true
      return withFileLock(this.#path, async () => {
        const ledger = this.#load()
        const { result, write } = change(ledger)
        if (write) await replace(this.#path, `${JSON.stringify(ledger, null, 2)}\n`)
        return result
      })
    })
  }

  #load(): Ledger {
    const text = readIfThere(this.#path)
    if (text === undefined) return { version: 1, epoch: 0, slots: [] }
    if (text === this.#valid) return JSON.parse(text) as Ledger
    const ledger = fileSchema.parse(JSON.parse(text))
    this.#valid = text
    return ledger
  }

  /** Serial within this process; the file lock is for other processes. */
  #inTurn<T>(work: () => Promise<T>): Promise<T> {
    return this.#queue.run(async () => {
      try {
        return await work()
      } catch (error) {
        if (error instanceof SandboxError) throw error
        this.#hasFolder = false
        throw new SandboxError(
          'ledger',
          `The sandbox ledger ${this.#path} cannot be used: ${describe(error)}`,
          { cause: error },
        )
      }
    })
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
