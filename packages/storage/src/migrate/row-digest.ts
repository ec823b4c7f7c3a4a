/** Canonical rows, equal for both databases, and order-independent digests of tables. */
import { createHash } from 'node:crypto'
import { storableText } from '@sandlot/shared/base/storable-text'
import { StorageError } from '../storage-error.ts'
import type { SourceTable } from './source.ts'

/** A value that PostgreSQL cannot store. */
class DamagedValue extends Error {
  override readonly name = 'DamagedValue'
}

/** A table in PostgreSQL. */
export interface TargetTable {
  /** By column. */
  types: ReadonlyMap<string, string>
  /** Columns with unique values. */
  keys: ReadonlySet<string>
}

/** Replaces U+0000 in a key, where removal could make two keys equal. */
const IN_KEYS = '\uFFFD'

/**
 * Without U+0000, which PostgreSQL cannot store. Throws `corrupt` for other unstorable rows, and
 * names them.
 */
export function canonicalRow(
  { store, name, columns }: SourceTable,
  { types, keys }: TargetTable,
  row: Readonly<Record<string, unknown>>,
): Record<string, unknown> {
  return Object.fromEntries(
    columns.map((column) => {
      // The index is rebuilt.
      if (name === 'sessions' && column === 'indexed_seq') return [column, 0]
      try {
        return [column, canonical(row[column], types.get(column) ?? '', keys.has(column) ? IN_KEYS : '')]
      } catch (error) {
        if (!(error instanceof DamagedValue)) throw error
        const keys = Object.entries(row).filter(([key]) => /(^|_)(id|seq|hash|name|kind)$|Id$/.test(key))
        const which = keys.map(([key, value]) => `${key} ${JSON.stringify(value)}`).join(', ')
        throw new StorageError(
          'corrupt',
          `A row of ${store}.${name} (${which}) is damaged: ${column}: ${error.message}. Restore the file from a backup, or repair this row with sqlite3.`,
          { cause: error },
        )
      }
    }),
  )
}

/** Number of U+0000 in the text of a row, where PostgreSQL cannot store it. */
export function countNuls({ types }: TargetTable, row: Readonly<Record<string, unknown>>): number {
  return Object.entries(row).reduce(
    (count, [column, value]) =>
      typeof value === 'string' && types.get(column) === 'text'
        ? count + value.split('\0').length - 1
        : count,
    0,
  )
}

/** Throws `DamagedValue`. */
function canonical(value: unknown, type: string, nul: string): unknown {
  if (value === null || value === undefined) return null
  if (type === 'bytea') {
    if (value instanceof Uint8Array) return value
    throw new DamagedValue(`it is ${typeof value} and not bytes`)
  }
  if (value instanceof Uint8Array) throw new DamagedValue('it is bytes and not text or a number')
  if (typeof value !== 'string' && typeof value !== 'number') throw new DamagedValue(`it is ${typeof value}`)
  if (type === 'text') return storableText(String(value).replaceAll('\0', nul))
  const number = Number(value)
  if (typeof value === 'string' && (value.trim() === '' || !Number.isFinite(number)))
    throw new DamagedValue('it is text and not a number')
  // A file may contain fractions of milliseconds in columns of whole ones.
  return type === 'double precision' ? number : Math.round(number)
}

const DIGEST_BITS = 128n

/** Independent of the order of rows; duplicates count twice. */
export class TableDigest {
  #sum: bigint

  constructor(begun = '0') {
    this.#sum = BigInt(`0x${begun}`)
  }

  /** `values`: canonical, by the names of `columns` in their order. */
  add(columns: readonly string[], values: Readonly<Record<string, unknown>>): void {
    const hash = createHash('sha256')
    for (const column of columns) {
      const value = values[column]
      if (value instanceof Uint8Array) hash.update(`b${value.length}:`).update(value)
      else hash.update(`${JSON.stringify(value)}\n`)
    }
    this.#sum = BigInt.asUintN(
      Number(DIGEST_BITS),
      this.#sum + BigInt(`0x${hash.digest('hex').slice(0, 32)}`),
    )
  }

  /** Hexadecimal. */
  toString(): string {
    return this.#sum.toString(16).padStart(Number(DIGEST_BITS) / 4, '0')
  }
}
