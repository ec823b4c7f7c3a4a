/** A long output whose every byte is known, and the receipt of one who has read it. */
import { createHash, type Hash } from 'node:crypto'

import type { OutputChunk, RunningCommand, Sandbox } from '../../src/sandbox.ts'
import { shell } from '../support/docker-fixture.ts'

const LINE = 16

/**
 * A shell command that notes in the file `runs` that it ran, then prints `bytes` bytes: numbered
 * lines of 16 bytes.
 */
export function numbered(bytes: number): string {
  return `echo ran >>runs; seq -f '%015.0f' 1 ${bytes / LINE}`
}

/** SHA-256 of what `numbered` prints. */
export function numberedHash(bytes: number): string {
  const hash = createHash('sha256')
  const lines = bytes / LINE
  for (let from = 1; from <= lines; from += 4_096) {
    const count = Math.min(4_096, lines - from + 1)
    hash.update(Array.from({ length: count }, (_, n) => `${String(from + n).padStart(15, '0')}\n`).join(''))
  }
  return hash.digest('hex')
}

/** Runs of `numbered` commands in this sandbox. */
export async function timesRun(sandbox: Sandbox): Promise<number> {
  return (await shell(sandbox, 'cat runs 2>/dev/null')).output.split('\n').filter((line) => line === 'ran')
    .length
}

/** Stored part of one command's output. */
export class Receipt {
  readonly #hash: Hash = createHash('sha256')
  bytes = 0

  /** Throws at a gap and at a byte that comes twice. */
  add({ offset, data }: OutputChunk): void {
    if (offset !== this.bytes) throw new Error(`Output at ${offset} came after ${this.bytes} bytes`)
    this.#hash.update(data)
    this.bytes += data.length
  }

  /**
   * Read on, acknowledging, until the end or until `enough` says so. Rejects as the command does.
   */
  async read(command: RunningCommand, enough: () => boolean = () => false): Promise<void> {
    for await (const chunk of command.output) {
      this.add(chunk)
      command.acknowledge({ stdout: this.bytes })
      if (enough()) return
    }
    command.acknowledge((await command.exit).bytes)
  }

  hash(): string {
    return this.#hash.copy().digest('hex')
  }
}
