import { once } from 'node:events'
import { type AddressInfo, createServer, type Socket } from 'node:net'
import { PassThrough } from 'node:stream'
import { connect } from 'node:tls'

import fc from 'fast-check'
import { beforeAll, describe, expect, test } from 'vitest'

import { extent } from '../../../../test/campaign.ts'
import { readClientHello } from '../../src/egress/client-hello.ts'
import { checkTls } from '../../src/egress/relay.ts'

/** First bytes of a real TLS client. */
async function helloOf(servername: string): Promise<Buffer> {
  const server = createServer().listen(0, '127.0.0.1')
  await once(server, 'listening')
  const client = connect({ port: (server.address() as AddressInfo).port, host: '127.0.0.1', servername })
  client.on('error', () => {})
  const [socket] = (await once(server, 'connection')) as [Socket]
  const [bytes] = (await once(socket, 'data')) as [Buffer]
  client.destroy()
  socket.destroy()
  server.close()
  return bytes
}

describe('the beginning of TLS', () => {
  let hello: Buffer
  beforeAll(async () => {
    hello = await helloOf('Allowed.TEST')
  })

  test('the name that a real client says', () => {
    expect(readClientHello(hello)).toEqual({ kind: 'tls', name: 'allowed.test' })
  })

  test('every beginning of it needs more', () => {
    for (let length = 0; length < hello.length; length += 1)
      expect(readClientHello(hello.subarray(0, length)).kind).toBe('more')
  })

  test('the same in records of a few bytes and more', () => {
    const body = hello.subarray(5)
    fc.assert(
      fc.property(fc.array(fc.integer({ min: 4, max: 300 }), { minLength: 1, maxLength: 50 }), (sizes) => {
        const records: Buffer[] = []
        for (let at = 0, turn = 0; at < body.length; turn += 1) {
          const part = body.subarray(at, at + (sizes[turn % sizes.length] ?? 1))
          const head = Buffer.from([22, 3, 1, 0, 0])
          head.writeUInt16BE(part.length, 3)
          records.push(head, part)
          at += part.length
        }
        expect(readClientHello(Buffer.concat(records))).toEqual({ kind: 'tls', name: 'allowed.test' })
      }),
      { numRuns: extent(50, 1_000) },
    )
  })

  test('without a name', async () => {
    expect(readClientHello(await helloOf(''))).toEqual({ kind: 'tls', name: undefined })
  })

  test.each([
    'GET / HTTP/1.1\r\n',
    'SSH-2.0-OpenSSH\r\n',
    '\x05\x01\x00',
    '\x16\x02\x00',
    '\x16\x03\x01\x00\x00',
    '\x15\x03\x01\x00\x02',
  ])('%j is something else', (text) => {
    expect(readClientHello(Buffer.from(text, 'latin1')).kind).toBe('other')
  })

  /** The hello with its extensions rewritten; each is its type and body. */
  function withExtensions(change: (extensions: [number, Buffer][]) => [number, Buffer][]): Buffer {
    const body = hello.subarray(9)
    let at = 34
    at += 1 + (body[at] ?? 0)
    at += 2 + body.readUInt16BE(at)
    at += 1 + (body[at] ?? 0)
    const extensions: [number, Buffer][] = []
    for (let from = at + 2; from < body.length;) {
      const length = body.readUInt16BE(from + 2)
      extensions.push([body.readUInt16BE(from), body.subarray(from + 4, from + 4 + length)])
      from += 4 + length
    }
    const number = (value: number, bytes: number): Buffer => {
      const made = Buffer.alloc(bytes)
      made.writeUIntBE(value, 0, bytes)
      return made
    }
    const all = Buffer.concat(
      change(extensions).flatMap(([type, text]) => [number(type, 2), number(text.length, 2), text]),
    )
    const whole = Buffer.concat([body.subarray(0, at), number(all.length, 2), all])
    const message = Buffer.concat([number(1, 1), number(whole.length, 3), whole])
    return Buffer.concat([Buffer.from([22, 3, 1]), number(message.length, 2), message])
  }

  /** An entry of the list of names. */
  const entry = (name: string, kind = 0): Buffer =>
    Buffer.concat([Buffer.from([kind, 0, name.length]), Buffer.from(name)])
  const names = (...entries: Buffer[]): Buffer => {
    const all = Buffer.concat(entries)
    return Buffer.concat([Buffer.from([0, all.length]), all])
  }

  test('rewritten it is the same', () => {
    expect(withExtensions((all) => all).equals(hello)).toBe(true)
  })

  test.each([
    ['two lists of names', [names(entry('allowed.test')), names(entry('evil.test'))]],
    ['two names', [names(entry('allowed.test'), entry('evil.test'))]],
    ['a name behind one of another kind', [names(entry('x', 7), entry('evil.test'))]],
    ['a name behind the end of the list', [Buffer.concat([names(), entry('evil.test')])]],
    ['no name in the list', [names()]],
    ['a list that is cut off', [names(entry('evil.test')).subarray(0, -1)]],
  ])('%s: not readable in one way only', (_what, lists) => {
    const made = withExtensions((all) => [
      ...all.filter(([type]) => type !== 0),
      ...lists.map((list): [number, Buffer] => [0, list]),
    ])
    expect(readClientHello(made)).toEqual({ kind: 'other' })
  })

  test('bytes after the extensions, and extensions that are cut off, are not read over', () => {
    const longer = Buffer.concat([hello, Buffer.from([0])])
    longer.writeUInt16BE(longer.readUInt16BE(3) + 1, 3)
    longer.writeUIntBE(longer.readUIntBE(6, 3) + 1, 6, 3)
    expect(readClientHello(longer)).toEqual({ kind: 'other' })
    const shorter = Buffer.from(hello.subarray(0, -1))
    shorter.writeUInt16BE(shorter.readUInt16BE(3) - 1, 3)
    shorter.writeUIntBE(shorter.readUIntBE(6, 3) - 1, 6, 3)
    expect(readClientHello(shorter)).toEqual({ kind: 'other' })
  })

  test('a hello in thousands of records ends before it costs much', () => {
    const head = Buffer.from([22, 3, 1, 0, 1])
    const message = Buffer.from([1, 0, 0x20, 0, ...Buffer.alloc(2_000)])
    const records = Buffer.concat([...message].flatMap((byte) => [head, Buffer.from([byte])]))
    expect(readClientHello(records)).toEqual({ kind: 'other' })
  })

  test('damaged bytes are never an exception', () => {
    fc.assert(
      fc.property(fc.array(fc.tuple(fc.nat(hello.length - 1), fc.nat(255)), { maxLength: 20 }), (changes) => {
        const damaged = Buffer.from(hello)
        for (const [at, value] of changes) damaged[at] = value
        expect(['more', 'other', 'tls']).toContain(readClientHello(damaged).kind)
      }),
      { numRuns: extent(500, 20_000) },
    )
  })
})

test.each([
  ['the name', 'allowed.test', undefined],
  ['another name', 'other.test', 'other_name'],
  ['no name', '', 'other_name'],
])('a tunnel for allowed.test that begins TLS for %s', async (_, servername, reason) => {
  const client = new PassThrough()
  client.write(await helloOf(servername))
  const checked = checkTls(client, 'allowed.test', new AbortController().signal)
  if (reason === undefined) await checked
  else await expect(checked).rejects.toMatchObject({ reason })
})
