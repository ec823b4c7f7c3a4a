/** Classification of the bytes that a connection has sent so far. */
type FirstBytes =
  | { kind: 'more' }
  | { kind: 'other' }
  /** A TLS ClientHello, with its server name when a readable one is present. */
  | { kind: 'tls'; name: string | undefined }

const HANDSHAKE = 22
const CLIENT_HELLO = 1
const SERVER_NAME = 0
/** Longer ones do not occur in practice; the bytes so far are parsed again with every new one. */
const LONGEST_HELLO = 16 * 1024
const MOST_RECORDS = 1_024

/** Parses the beginning of a connection (RFC 8446 sections 4.1.2 and 5.1, RFC 6066 section 3). */
export function readClientHello(bytes: Buffer): FirstBytes {
  const hello = Buffer.alloc(Math.min(bytes.length, LONGEST_HELLO))
  let have = 0
  for (let at = 0, records = 0; ; records += 1) {
    if (records === MOST_RECORDS) return { kind: 'other' }
    if (bytes.length > at && bytes[at] !== HANDSHAKE) return { kind: 'other' }
    if (bytes.length > at + 1 && bytes[at + 1] !== 3) return { kind: 'other' }
    if (bytes.length < at + 5) return { kind: 'more' }
    const length = bytes.readUInt16BE(at + 3)
    if (length === 0 || length > 16_384 + 256) return { kind: 'other' }
    const part = bytes.subarray(at + 5, at + 5 + length)
    part.copy(hello, have)
    have += part.length
    if (have > 0 && hello[0] !== CLIENT_HELLO) return { kind: 'other' }
    if (have >= 4) {
      const need = 4 + hello.readUIntBE(1, 3)
      if (need > LONGEST_HELLO) return { kind: 'other' }
      if (have >= need) {
        const said = serverName(hello.subarray(4, need))
        return said === 'unreadable' ? { kind: 'other' } : { kind: 'tls', ...said }
      }
    }
    if (part.length < length) return { kind: 'more' }
    at += 5 + length
  }
}

/** A position in bytes that returns undefined past their end and never throws. */
function cursor(bytes: Buffer) {
  let at = 0
  return {
    over: (): boolean => at >= bytes.length,
    number(size: 1 | 2): number | undefined {
      at += size
      return at <= bytes.length ? bytes.readUIntBE(at - size, size) : undefined
    },
    take(size: number | undefined): Buffer | undefined {
      if (size === undefined || at + size > bytes.length) return undefined
      at += size
      return bytes.subarray(at - size, at)
    },
  }
}

/**
 * Undefined when there is none. A hello in which two readers could find two names is `unreadable`.
 */
function serverName(hello: Buffer): { name: string | undefined } | 'unreadable' {
  const read = cursor(hello)
  // Version and random, session id, cipher suites, compression methods.
  const before =
    read.take(34) && read.take(read.number(1)) && read.take(read.number(2)) && read.take(read.number(1))
  if (!before) return 'unreadable'
  if (read.over()) return { name: undefined }
  const extensions = read.take(read.number(2))
  if (!extensions || !read.over()) return 'unreadable'
  const names: Buffer[] = []
  for (const list = cursor(extensions); !list.over();) {
    const type = list.number(2)
    const body = list.take(list.number(2))
    if (type === undefined || !body) return 'unreadable'
    if (type === SERVER_NAME) names.push(body)
  }
  const [body] = names
  if (!body) return { name: undefined }
  // One extension with one entry, of the only kind that exists.
  const entries = cursor(body)
  const list = cursor(entries.take(entries.number(2)) ?? Buffer.alloc(0))
  const kind = list.number(1)
  const name = list.take(list.number(2))
  if (names.length > 1 || !entries.over() || kind !== 0 || !name || !list.over()) return 'unreadable'
  return { name: name.toString('latin1').toLowerCase().replace(/\.$/, '') }
}
