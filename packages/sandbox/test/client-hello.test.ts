import { once } from 'node:events'
import { type AddressInfo, createServer, type Socket } from 'node:net'
import { connect } from 'node:tls'

import fc from 'fast-check'
import { beforeAll, describe, expect, test } from 'vitest'

import { extent } from '../../../test/campaign.ts'
import { readClientHello } from '../src/egress/client-hello.ts'

/** What a real TLS client says first. */
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

  test('the same in records of one byte and more', () => {
    const body = hello.subarray(5)
    fc.assert(
      fc.property(fc.array(fc.integer({ min: 1, max: 300 }), { minLength: 1, maxLength: 50 }), (sizes) => {
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
