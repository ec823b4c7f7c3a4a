/** Rows in the one form that both databases give them, and digests of tables in any order. */
import { createHash } from 'node:crypto'

/** A row that PostgreSQL cannot have. */
export class DamagedValue extends Error {
  override readonly name = 'DamagedValue'
}

/** `type`: of the column in PostgreSQL. Throws `DamagedValue`. */
export function canonical(value: unknown, type: string): unknown {
  if (value === null || value === undefined) return null
  if (type === 'bytea') {
    if (value instanceof Uint8Array) return value
    throw new DamagedValue(`it is ${typeof value} and not bytes`)
  }
  if (value instanceof Uint8Array) throw new DamagedValue('it is bytes and not text or a number')
  if (type === 'text') {
    const text = String(value)
    if (text.includes('\0')) throw new DamagedValue('there is a NUL in its text')
    return text
  }
  const number = Number(value)
  if (typeof value === 'string' && (value.trim() === '' || !Number.isFinite(number)))
    throw new DamagedValue('it is text and not a number')
  // A file keeps parts of milliseconds where whole ones are meant.
  return type === 'double precision' ? number : Math.round(number)
}

const DIGEST_BITS = 128n

/** Of many rows in any order: each counts once, and what is there twice counts twice. */
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
