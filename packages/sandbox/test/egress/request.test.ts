import { Duplex } from 'node:stream'

import fc from 'fast-check'
import { describe, expect, test } from 'vitest'

import { extent } from '../../../../test/campaign.ts'
import { readBody } from '../../src/egress/body.ts'
import { readAuthority, readHost } from '../../src/egress/host.ts'
import { readHead } from '../../src/egress/reading.ts'
import { EgressRefused } from '../../src/egress/refusal.ts'
import { readRequest } from '../../src/egress/request.ts'

const never = new AbortController().signal
const lines = (...text: string[]): string => `${text.join('\r\n')}\r\n\r\n`
const reasonOf = (work: () => unknown): string => {
  try {
    work()
  } catch (error) {
    return error instanceof EgressRefused ? error.reason : String(error)
  }
  return 'accepted'
}

/** A stream that yields these pieces, then ends. */
function streamOf(pieces: readonly Uint8Array[]): Duplex {
  const left = pieces.map((piece) => Buffer.from(piece))
  return new Duplex({
    read() {
      this.push(left.shift() ?? null)
    },
    write: (_chunk, _encoding, done) => done(),
  })
}

/** Cut bytes at these places. */
function cut(bytes: Buffer, at: readonly number[]): Buffer[] {
  const places = [...new Set(at.map((place) => place % (bytes.length + 1)))].toSorted((a, b) => a - b)
  return [0, ...places]
    .map((from, index) => bytes.subarray(from, places[index]))
    .filter((piece) => piece.length > 0)
}

describe('what a request asks for', () => {
  test('a tunnel', () => {
    const request = readRequest(
      lines(
        'CONNECT Allowed.TEST.:443 HTTP/1.1',
        'Host: allowed.test:443',
        `Proxy-Authorization: Basic ${Buffer.from('id:sandbox').toString('base64')}`,
        'User-Agent: x',
      ),
    )
    expect(request).toMatchObject({
      kind: 'connect',
      authority: { host: 'allowed.test', port: 443 },
      proxyUser: 'id',
    })
  })

  test('an address: what is for the proxy, and what the connection names, is not sent on', () => {
    const request = readRequest(
      lines(
        'POST http://allowed.test:8080/a?b=1 HTTP/1.1',
        'Host: allowed.test:8080',
        'Connection: keep-alive, X-Private',
        'Proxy-Connection: keep-alive',
        'Proxy-Authorization: Basic aWQ6eA==',
        'Upgrade: websocket',
        'X-Private: 1',
        'Accept: */*',
        'Content-Length: 3',
      ),
    )
    expect(request).toMatchObject({
      kind: 'forward',
      method: 'POST',
      path: '/a?b=1',
      authority: { host: 'allowed.test', port: 8080 },
      headers: [{ name: 'Accept', value: '*/*' }],
      body: { kind: 'length', bytes: 3 },
    })
  })

  test.each([
    [
      'both a length and a coding',
      ['POST http://a.test/ HTTP/1.1', 'Host: a.test', 'Content-Length: 3', 'Transfer-Encoding: chunked'],
    ],
    [
      'two lengths',
      ['POST http://a.test/ HTTP/1.1', 'Host: a.test', 'Content-Length: 3', 'Content-Length: 3'],
    ],
    ['a length with a sign', ['POST http://a.test/ HTTP/1.1', 'Host: a.test', 'Content-Length: +3']],
    ['a length as a list', ['POST http://a.test/ HTTP/1.1', 'Host: a.test', 'Content-Length: 3, 3']],
    [
      'a coding that is not only chunked',
      ['POST http://a.test/ HTTP/1.1', 'Host: a.test', 'Transfer-Encoding: gzip, chunked'],
    ],
    ['a coding that hides', ['POST http://a.test/ HTTP/1.1', 'Host: a.test', 'Transfer-Encoding: xchunked']],
    [
      'a space before the colon',
      ['POST http://a.test/ HTTP/1.1', 'Host: a.test', 'Transfer-Encoding : chunked'],
    ],
    ['a folded header', ['GET http://a.test/ HTTP/1.1', 'Host: a.test', 'X-A: 1', ' folded']],
    ['another Host', ['GET http://a.test/ HTTP/1.1', 'Host: b.test']],
    ['another port in Host', ['GET http://a.test/ HTTP/1.1', 'Host: a.test:8080']],
    ['two Hosts', ['GET http://a.test/ HTTP/1.1', 'Host: a.test', 'Host: a.test']],
    ['no Host', ['GET http://a.test/ HTTP/1.1']],
    ['a tunnel with another Host', ['CONNECT a.test:443 HTTP/1.1', 'Host: b.test:443']],
    ['a tunnel with a body', ['CONNECT a.test:443 HTTP/1.1', 'Host: a.test:443', 'Content-Length: 3']],
    ['a tunnel without a port', ['CONNECT a.test HTTP/1.1', 'Host: a.test']],
    ['a path only', ['GET / HTTP/1.1', 'Host: a.test']],
    ['https without a tunnel', ['GET https://a.test/ HTTP/1.1', 'Host: a.test']],
    ['another scheme', ['GET ftp://a.test/ HTTP/1.1', 'Host: a.test']],
    ['a user name', ['GET http://a.test@evil.test/ HTTP/1.1', 'Host: evil.test']],
    ['a backslash', ['GET http://a.test\\@evil.test/ HTTP/1.1', 'Host: a.test']],
    ['a fragment', ['GET http://a.test/#x HTTP/1.1', 'Host: a.test']],
    ['a method that hides a tunnel', ['connect http://a.test/ HTTP/1.1', 'Host: a.test']],
    ['a method that only some readers know', ['head http://a.test/ HTTP/1.1', 'Host: a.test']],
    ['an echo of what the controller adds', ['TRACE http://a.test/ HTTP/1.1', 'Host: a.test']],
    ['two spaces', ['GET  http://a.test/ HTTP/1.1', 'Host: a.test']],
    ['HTTP/2', ['GET http://a.test/ HTTP/2.0', 'Host: a.test']],
    ['HTTP/0.9', ['GET http://a.test/']],
    ['a control character in a value', ['GET http://a.test/ HTTP/1.1', 'Host: a.test', 'X: a\x0bb']],
    ['chunks in HTTP/1.0', ['POST http://a.test/ HTTP/1.0', 'Host: a.test', 'Transfer-Encoding: chunked']],
  ])('%s is refused', (_what, head) => {
    expect(reasonOf(() => readRequest(lines(...head)))).toBe('bad_request')
  })

  test('inside a tunnel to port 80 a request goes to that host only', () => {
    const there = { host: 'a.test', port: 80 }
    expect(readRequest(lines('GET /x HTTP/1.1', 'Host: a.test'), there)).toMatchObject({
      authority: there,
      path: '/x',
    })
    expect(reasonOf(() => readRequest(lines('GET /x HTTP/1.1', 'Host: b.test'), there))).toBe('bad_request')
    expect(reasonOf(() => readRequest(lines('GET http://b.test/ HTTP/1.1', 'Host: a.test'), there))).toBe(
      'bad_request',
    )
    expect(reasonOf(() => readRequest(lines('CONNECT a.test:80 HTTP/1.1', 'Host: a.test:80'), there))).toBe(
      'bad_request',
    )
  })
})

describe('host names', () => {
  test.each(['ALLOWED.test.', 'allowed.test', 'Allowed.Test'])(
    '%s is one spelling of allowed.test',
    (text) => {
      expect(readHost(text)).toEqual({ host: 'allowed.test' })
    },
  )

  test.each([
    '',
    '.',
    'a..test',
    'allowed.test..',
    '-a.test',
    'evil.test\0.allowed.test',
    'allowed.test@evil.test',
    'allowed%2etest',
    'allowed\u3002test',
    'allowed\uff0etest',
    'bücher.test',
    'b\u00fccher.test',
    'a b.test',
    'a_\u0430.test',
    '2852039166',
    '0xA9FEA9FE',
    '0251.0376.0251.0376',
    '169.254.169.254',
    '169.254.43518',
    '0x7f.1',
    '[::1]',
    '[::ffff:169.254.169.254]',
    '[fe80::1%25lo]',
    'xn--',
    'xn--a-.test',
    `${'a'.repeat(64)}.test`,
    `${'a.'.repeat(127)}test`,
  ])('%j is none', (text) => {
    expect(readHost(text)).toHaveProperty('problem')
  })

  test.each([
    'a.test:0',
    'a.test:65536',
    'a.test:',
    'a.test:+80',
    'a.test:080',
    'a.test:80:80',
    '[::1]:80',
    'u@a.test:80',
    'a.test/x:80',
  ])('%s is no authority', (text) => {
    expect(readAuthority(text, 80)).toHaveProperty('problem')
  })

  test('whatever the text: what is accepted is lower-case ASCII of labels, and stays as it is', () => {
    const pieces = fc.constantFrom(
      'a',
      'Z',
      '0',
      '.',
      '-',
      '_',
      '%',
      '@',
      ':',
      '\0',
      'é',
      '\u3002',
      '\uff0e',
      ' ',
      'xn--',
      '/',
      '\\',
    )
    fc.assert(
      fc.property(fc.array(pieces, { maxLength: 20 }), (parts) => {
        const read = readHost(parts.join(''))
        if ('problem' in read) return
        expect(read.host).toMatch(/^[a-z0-9_-]+(\.[a-z0-9_-]+)*$/)
        expect(readHost(read.host)).toEqual(read)
        expect(new URL(`http://${read.host}/`).hostname).toBe(read.host)
      }),
      { numRuns: extent(500, 20_000) },
    )
  })
})

describe('reading from the wire', () => {
  const head = lines('POST http://a.test/ HTTP/1.1', 'Host: a.test', 'Transfer-Encoding: chunked')
  const chunked = (parts: readonly Uint8Array[]): Buffer =>
    Buffer.concat([
      ...parts.flatMap((part) => [
        Buffer.from(`${part.length.toString(16)};x=1\r\n`),
        Buffer.from(part),
        Buffer.from('\r\n'),
      ]),
      Buffer.from('0\r\nTrailer: x\r\n\r\n'),
    ])

  async function readAll(stream: Duplex): Promise<{ head: string | undefined; body: Buffer; rest: Buffer }> {
    const read = await readHead(stream, never)
    const body: Buffer[] = []
    for await (const chunk of readBody(stream, readRequest(read ?? '').body, never)) body.push(chunk)
    const rest: Buffer[] = []
    for await (const chunk of stream) rest.push(chunk as Buffer)
    return { head: read, body: Buffer.concat(body), rest: Buffer.concat(rest) }
  }

  test('the same whatever the cuts: head, body, and what comes after stays', async () => {
    const part = fc.uint8Array({ minLength: 1, maxLength: 40 })
    await fc.assert(
      fc.asyncProperty(
        fc.array(part, { maxLength: 4 }),
        fc.array(fc.nat(), { maxLength: 30 }),
        fc.uint8Array({ maxLength: 9 }),
        async (parts, places, after) => {
          const whole = Buffer.concat([Buffer.from(head), chunked(parts), after])
          const read = await readAll(streamOf(cut(whole, places)))
          expect(read.head).toBe(head)
          expect(read.body.equals(Buffer.concat(parts))).toBe(true)
          expect(read.rest.equals(Buffer.from(after))).toBe(true)
        },
      ),
      { numRuns: extent(100, 2_000) },
    )
  })

  test.each([
    ['a bare LF in the head', 'GET http://a.test/ HTTP/1.1\nHost: a.test\r\n\r\n'],
    ['a bare CR in the head', 'GET http://a.test/ HTTP/1.1\rX: y\r\nHost: a.test\r\n\r\n'],
    ['a NUL', 'GET http://a\0.test/ HTTP/1.1\r\n\r\n'],
    ['TLS', '\x16\x03\x01\x00\x05hello'],
    ['SOCKS 5', '\x05\x01\x00'],
    ['SOCKS 4', '\x04\x01\x00\x50\x7f\x00\x00\x01\x00'],
    ['an end in the middle', 'GET http://a.test/ HTTP/1.1\r\nHost'],
    ['an endless head', `GET http://a.test/ HTTP/1.1\r\nX: ${'a'.repeat(70_000)}`],
  ])('%s is refused', async (_what, text) => {
    const read = readHead(streamOf([Buffer.from(text, 'latin1')]), never)
    await expect(read).rejects.toMatchObject({ reason: 'bad_request' })
  })

  test.each([
    ['a length with 0x', '0x3\r\nabc\r\n0\r\n\r\n'],
    ['a length with a space', '3 \r\nabc\r\n0\r\n\r\n'],
    ['a negative length', '-1\r\nabc\r\n0\r\n\r\n'],
    ['a bare LF', '3\nabc\r\n0\r\n\r\n'],
    ['a chunk that is longer than it says', '3\r\nabcd\r\n0\r\n\r\n'],
    ['a length beyond all', 'fffffffffffff\r\n'],
    ['no end', '3\r\nabc\r\n'],
  ])('in a chunked body %s is refused', async (_what, text) => {
    const read = async (): Promise<void> => {
      for await (const chunk of readBody(streamOf([Buffer.from(text)]), { kind: 'chunked' }, never))
        expect(chunk).toBeDefined()
    }
    await expect(read()).rejects.toMatchObject({ reason: 'bad_request' })
  })

  test('any bytes at all: a head or a refusal, nothing else', async () => {
    await fc.assert(
      fc.asyncProperty(fc.uint8Array({ maxLength: 200 }), async (bytes) => {
        const outcome = await readHead(streamOf([bytes]), never).then(
          (text) => (text === undefined ? 'nothing' : reasonOf(() => readRequest(text))),
          (error: unknown) => (error instanceof EgressRefused ? error.reason : String(error)),
        )
        expect(['nothing', 'bad_request']).toContain(outcome)
      }),
      { numRuns: extent(300, 5_000) },
    )
  })
})
