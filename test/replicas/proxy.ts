/**
 * A proxy in front of a Unix socket: of one ai-agent alone, to its database or to its engine. What passes can be cut, held as a
 * network does that drops packets, and waited for.
 */
import { rmSync } from 'node:fs'
import { type Socket, connect, createServer } from 'node:net'
import { Transform, type TransformCallback } from 'node:stream'

export interface Proxy {
  /** Ends all connections, and refuses new ones. */
  cut(): void
  /** Holds all traffic, new connections included, without closing them. */
  hold(): void
  /** Passes traffic again, held data included. */
  restore(): void
  /**
   * Resolves when a client has sent this text, and soon behind it `soon`, which pass; the answer, and
   * everything behind it on that connection, is held until `restore`.
   */
  holdAnswerTo(text: string, soon?: string): Promise<void>
  /** PostgreSQL's notifications do not pass. */
  withoutNotifications(): void
  close(): Promise<void>
}

interface Waited {
  text: string
  soon: string
  found: () => void
}

/** Characters of a statement with its values. */
const SOON = 1_500

function isIn(sent: Buffer, { text, soon }: Waited): boolean {
  const all = sent.toString('latin1')
  for (let at = all.indexOf(text); at !== -1; at = all.indexOf(text, at + 1))
    if (all.slice(at, at + SOON).includes(soon)) return true
  return false
}

export async function startProxy(path: string, target: string): Promise<Proxy> {
  const links = new Set<{ client: Socket; server: Socket; up: Gate; down: Gate }>()
  let refuses = false
  let held = false
  let dropsNotifications = false
  const waited = new Set<Waited>()

  const server = createServer((client) => {
    if (refuses) return void client.destroy()
    const far = connect(target)
    let sent = Buffer.alloc(0)
    const up = new Gate((chunk) => {
      sent = Buffer.concat([sent, chunk])
      for (const one of waited) {
        if (!isIn(sent, one)) continue
        down.hold()
        waited.delete(one)
        one.found()
      }
      sent = sent.subarray(-4 * SOON)
      return chunk
    })
    const messages = new BackendMessages()
    const down = new Gate((chunk) => (dropsNotifications ? messages.withoutNotifications(chunk) : chunk))
    const link = { client, server: far, up, down }
    links.add(link)
    if (held) for (const gate of [up, down]) gate.hold()
    for (const socket of [client, far]) {
      socket.on('error', () => undefined)
      socket.on('close', () => {
        links.delete(link)
        client.destroy()
        far.destroy()
      })
    }
    client.pipe(up).pipe(far)
    far.pipe(down).pipe(client)
  })
  rmSync(path, { force: true })
  await new Promise<void>((resolve) => server.listen(path, resolve))

  const gates = (): Gate[] => [...links].flatMap(({ up, down }) => [up, down])
  const endAll = (): void => {
    for (const link of links) for (const socket of [link.client, link.server]) socket.destroy()
  }
  return {
    cut() {
      refuses = true
      endAll()
    },
    hold() {
      held = true
      for (const gate of gates()) gate.hold()
    },
    restore() {
      refuses = false
      held = false
      dropsNotifications = false
      waited.clear()
      for (const gate of gates()) gate.release()
    },
    holdAnswerTo: (text, soon = '') => new Promise((found) => void waited.add({ text, soon, found })),
    withoutNotifications() {
      dropsNotifications = true
      // Those of now would be read from the middle of a message on.
      endAll()
    },
    async close() {
      endAll()
      await new Promise((resolve) => server.close(resolve))
    },
  }
}

/** Passes on what `change` makes of each piece, unless it is held. */
class Gate extends Transform {
  readonly #change: (chunk: Buffer) => Buffer
  #held = false
  #waiting: (() => void) | undefined

  constructor(change: (chunk: Buffer) => Buffer) {
    super()
    this.#change = change
  }

  override _transform(chunk: Buffer, _encoding: BufferEncoding, done: TransformCallback): void {
    const changed = this.#change(chunk)
    if (this.#held) this.#waiting = () => done(null, changed)
    else done(null, changed)
  }

  hold(): void {
    this.#held = true
  }

  release(): void {
    this.#held = false
    this.#waiting?.()
    this.#waiting = undefined
  }
}

const NOTIFICATION = 'A'.charCodeAt(0)
const HEADER_BYTES = 5

/** Parses PostgreSQL messages without TLS: a letter, a length that includes itself, the rest. */
class BackendMessages {
  #rest = Buffer.alloc(0)

  withoutNotifications(chunk: Buffer): Buffer {
    this.#rest = Buffer.concat([this.#rest, chunk])
    const kept: Buffer[] = []
    while (this.#rest.length >= HEADER_BYTES) {
      const length = 1 + this.#rest.readUInt32BE(1)
      if (this.#rest.length < length) break
      if (this.#rest[0] !== NOTIFICATION) kept.push(this.#rest.subarray(0, length))
      this.#rest = this.#rest.subarray(length)
    }
    return Buffer.concat(kept)
  }
}
