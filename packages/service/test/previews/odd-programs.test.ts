/** Previews of programs that speak HTTP oddly: raw bytes in place of a web server. */
import { once } from 'node:events'
import { type IncomingMessage, request as httpRequest, STATUS_CODES } from 'node:http'
import { type AddressInfo, connect, createServer, type Server, type Socket } from 'node:net'
import { text } from 'node:stream/consumers'
import { beforeEach, expect, test } from 'vitest'
import { joinToProgram, openPreview } from '../support/preview-browser.ts'
import { useHarness } from '../support/use-harness.ts'

const now = useHarness()

let program: Server
let preview: { host: string; cookie: string }
/** Sends the program's bytes for the path that it was asked for. */
let answer: (socket: Socket, path: string) => void
/** Connections to the program, and requests. */
let counts = { connections: 0, requests: 0 }

beforeEach(async () => {
  counts = { connections: 0, requests: 0 }
  const open = new Set<Socket>()
  program = createServer({ allowHalfOpen: true }, (socket) => {
    open.add(socket)
    counts.connections++
    let head = ''
    socket.setEncoding('latin1').on('data', (piece: string) => {
      head += piece
      if (!head.includes('\r\n\r\n')) return
      const path = /^\S+ (\S+)/.exec(head)?.[1] ?? ''
      head = ''
      counts.requests++
      answer(socket, path)
    })
    socket.on('error', () => undefined).on('end', () => socket.end())
  })
  await once(program.listen(0, '127.0.0.1'), 'listening')
  const { port } = program.address() as AddressInfo
  joinToProgram(now().harness, port)
  preview = await openPreview(now().harness, now().ann, port)
  return async () => {
    for (const socket of open) socket.destroy()
    await new Promise((resolve) => program.close(resolve))
  }
})

interface Answer {
  status: number
  statusMessage: string
  headers: IncomingMessage['headers']
  body: string
}

/** Rejects where the browser gets no answer; a body that is cut off is as far as it came. */
async function ask(path: string, method = 'GET'): Promise<Answer> {
  const own = new URL(now().harness.service.url)
  const { host, cookie } = preview
  const sent = httpRequest({ host: own.hostname, port: own.port, path, method, headers: { host, cookie } })
  sent.end()
  const [response] = (await once(sent, 'response')) as [IncomingMessage]
  const body = await text(response).catch(() => 'cut off')
  const { statusCode: status = 0, statusMessage = '', headers } = response
  return { status, statusMessage, headers, body }
}

/** The first line and the rest of what a browser reads that asks for another protocol. */
async function askToUpgrade(path: string): Promise<[line: string, rest: string]> {
  const own = new URL(now().harness.service.url)
  const socket = connect({ host: own.hostname, port: Number(own.port) })
  const { host, cookie } = preview
  socket.write(
    [
      `GET ${path} HTTP/1.1`,
      `host: ${host}`,
      `cookie: ${cookie}`,
      'connection: upgrade',
      'upgrade: odd',
      '',
      '',
    ].join('\r\n'),
  )
  let read = ''
  for await (const piece of socket.setEncoding('latin1')) {
    read += String(piece)
    if (/^HTTP\/1\.1 101 [^]*\r\n\r\n/.test(read)) break
  }
  const [line = '', ...rest] = read.split('\r\n')
  return [line, rest.join('\r\n')]
}

const BYTES = Array.from({ length: 256 }, (_, byte) => byte)
const AT_ONCE = 8

/** For each byte, few at once: a person has 32 connections. */
async function forEachByte(check: (byte: number) => Promise<void>): Promise<void> {
  const left = [...BYTES]
  const work = async (): Promise<void> => {
    for (let byte = left.shift(); byte !== undefined; byte = left.shift()) await check(byte)
  }
  await Promise.all(Array.from({ length: AT_ONCE }, work))
}

/** Each odd byte is at `path`. */
const oddAt = (path: string): string => String.fromCharCode(Number(path.slice(1)))
const send = (socket: Socket, bytes: string): void => void socket.write(bytes, 'latin1')

const isSendable = (byte: number): boolean => byte === 9 || (byte >= 32 && byte !== 127)

test('a byte of a status text gets an answer, and the text is never passed on', async () => {
  answer = (socket, path) => send(socket, `HTTP/1.1 404 No${oddAt(path)}where\r\ncontent-length: 2\r\n\r\nhi`)
  await forEachByte(async (byte) => {
    const { status, statusMessage, body } = await ask(`/${byte}`)
    expect([404, 502], `byte ${byte}`).toContain(status)
    expect(statusMessage, `byte ${byte}`).toBe(STATUS_CODES[status])
    if (isSendable(byte)) expect([status, body]).toEqual([404, 'hi'])
  })
})

test.each([
  ['name', (odd: string) => `x-${odd}y: z`],
  ['value', (odd: string) => `x-odd: a${odd}z`],
  ['name of a cookie', (odd: string) => `set-cookie: a${odd}=1`],
  ['place to go to', (odd: string) => `location: /a${odd}z`],
])('a byte of a header’s %s gets an answer', async (_what, header) => {
  answer = (socket, path) =>
    send(socket, `HTTP/1.1 200 OK\r\n${header(oddAt(path))}\r\ncontent-length: 2\r\n\r\nhi`)
  await forEachByte(async (byte) => {
    const { status, headers, body } = await ask(`/${byte}`)
    expect([200, 502], `byte ${byte}`).toContain(status)
    if (status === 200 && ![10, 13].includes(byte)) expect(body, `byte ${byte}`).toBe('hi')
    if (header('').startsWith('x-odd') && isSendable(byte))
      expect([status, headers['x-odd']]).toEqual([200, `a${String.fromCharCode(byte)}z`])
  })
})

test('a byte of a trailer gets an answer', async () => {
  const start = 'HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\ntrailer: x-odd\r\n\r\n2\r\nhi\r\n0\r\n'
  answer = (socket, path) => send(socket, `${start}x-odd: a${oddAt(path)}z\r\n\r\n`)
  await forEachByte(async (byte) => {
    const { status, body } = await ask(`/${byte}`)
    expect([`200 hi`, '200 cut off', expect.stringMatching(/^502/)], `byte ${byte}`).toContainEqual(
      `${status} ${body}`,
    )
  })
})

test.each([
  ['status text', (odd: string) => `HTTP/1.1 101 Swit${odd}ch\r\nconnection: upgrade\r\nupgrade: odd`],
  ['header', (odd: string) => `HTTP/1.1 101 X\r\nconnection: upgrade\r\nupgrade: odd\r\nx-odd: a${odd}z`],
  ['protocol', (odd: string) => `HTTP/1.1 101 X\r\nconnection: upgrade\r\nupgrade: o${odd}d`],
  ['refusal', (odd: string) => `HTTP/1.1 400 N${odd}o\r\nx-odd: a${odd}z\r\ncontent-length: 0`],
])('a byte of the %s of an upgrade gets an answer', async (_what, head) => {
  answer = (socket, path) => send(socket, `${head(oddAt(path))}\r\n\r\n`)
  await forEachByte(async (byte) => {
    const [line, rest] = await askToUpgrade(`/${byte}`)
    expect([
      'HTTP/1.1 101 Switching Protocols',
      'HTTP/1.1 400 Bad Request',
      'HTTP/1.1 502 Bad Gateway',
    ]).toContain(line)
    const [headers = ''] = rest.split('\r\n\r\n')
    for (const one of headers.split('\r\n'))
      expect(one, `byte ${byte}`).toMatch(/^[\w-]+: [\t\x20-\x7e\x80-\xff]*$/)
    if (head('').includes('x-odd') && isSendable(byte) && byte !== 9)
      expect(rest, `byte ${byte}`).toContain(`x-odd: a${String.fromCharCode(byte)}z\r\n`)
  })
})

test.each([
  ['101 to an ordinary request', 'HTTP/1.1 101 X\r\nconnection: upgrade\r\nupgrade: odd\r\n\r\n', '502'],
  ['101 without a protocol', 'HTTP/1.1 101 X\r\n\r\n', '502'],
  ['a status below 100', 'HTTP/1.1 99 X\r\n\r\n', '502'],
  ['a status 099', 'HTTP/1.1 099 X\r\ncontent-length: 0\r\n\r\n', '502'],
  ['a status 000', 'HTTP/1.1 000 X\r\ncontent-length: 0\r\n\r\n', '502'],
  ['a status of four digits', 'HTTP/1.1 2000 X\r\ncontent-length: 0\r\n\r\n', '502'],
  ['a status 600', 'HTTP/1.1 600 X\r\ncontent-length: 2\r\n\r\nhi', '600 hi'],
  ['a status 999', 'HTTP/1.1 999 X\r\ncontent-length: 2\r\n\r\nhi', '999 hi'],
  ['no status text', 'HTTP/1.1 200\r\ncontent-length: 2\r\n\r\nhi', '200 hi'],
  [
    'what comes before the answer',
    `${'HTTP/1.1 103 X\r\nlink: </a>\r\n\r\n'.repeat(3)}HTTP/1.1 200 X\r\ncontent-length: 2\r\n\r\nhi`,
    '200 hi',
  ],
  ['100 unasked', 'HTTP/1.1 100 X\r\n\r\nHTTP/1.1 200 X\r\ncontent-length: 2\r\n\r\nhi', '200 hi'],
  ['204 with a body', 'HTTP/1.1 204 X\r\ncontent-length: 2\r\n\r\nhi', '204 '],
  ['204 with chunks', 'HTTP/1.1 204 X\r\ntransfer-encoding: chunked\r\n\r\n2\r\nhi\r\n0\r\n\r\n', '204 '],
  ['304 with a body', 'HTTP/1.1 304 X\r\ncontent-length: 2\r\n\r\nhi', '304 '],
  [
    'the same header twice',
    'HTTP/1.1 200 X\r\nx-odd: 1\r\nx-odd: 2\r\ncontent-type: a/b\r\ncontent-type: c/d\r\ncontent-length: 2\r\n\r\nhi',
    '200 hi',
  ],
  ['two lengths', 'HTTP/1.1 200 X\r\ncontent-length: 2\r\ncontent-length: 3\r\n\r\nhi', '502'],
  [
    'a length and chunks',
    'HTTP/1.1 200 X\r\ncontent-length: 2\r\ntransfer-encoding: chunked\r\n\r\n2\r\nhi\r\n0\r\n\r\n',
    '502',
  ],
  ['a length that is no number', 'HTTP/1.1 200 X\r\ncontent-length: two\r\n\r\nhi', '502'],
  ['a negative length', 'HTTP/1.1 200 X\r\ncontent-length: -2\r\n\r\nhi', '502'],
  ['a length beyond all numbers', `HTTP/1.1 200 X\r\ncontent-length: ${'9'.repeat(30)}\r\n\r\nhi`, '502'],
  ['more than its length', 'HTTP/1.1 200 X\r\ncontent-length: 2\r\n\r\nhi there', '200 hi'],
  ['headers without an end', `HTTP/1.1 200 X\r\nx-odd: ${'a'.repeat(40_000)}`, '502'],
  ['no HTTP', 'SSH-2.0-none\r\n', '502'],
  ['another version', 'HTTP/2.0 200 X\r\ncontent-length: 2\r\n\r\nhi', '200 hi'],
])('an ordinary request gets an answer: %s', async (_what, bytes, expected) => {
  answer = (socket) => send(socket, bytes)
  const { status, body } = await ask('/')
  expect(expected === '502' ? `${status}` : `${status} ${body}`).toBe(expected)
  // And so does the next one on whatever is left of the connection.
  answer = (socket) => send(socket, 'HTTP/1.1 200 X\r\ncontent-length: 4\r\n\r\nnext')
  expect((await ask('/')).body).toBe('next')
})

test.each([
  ['a status below 100', 'HTTP/1.1 99 X\r\n\r\n', /^HTTP\/1\.1 502 /],
  ['a status 099', 'HTTP/1.1 099 X\r\ncontent-length: 0\r\n\r\n', /^HTTP\/1\.1 502 /],
  ['101 without a protocol', 'HTTP/1.1 101 X\r\n\r\n', /^HTTP\/1\.1 502 /],
  ['a status 999', 'HTTP/1.1 999 X\r\ncontent-length: 0\r\n\r\n', /^HTTP\/1\.1 999 /],
  ['a body cut off', 'HTTP/1.1 400 X\r\ncontent-length: 9\r\n\r\nhi', /^HTTP\/1\.1 400 /],
  ['no HTTP', 'SSH-2.0-none\r\n', /^HTTP\/1\.1 502 /],
])('an upgrade gets one answer: %s', async (_what, bytes, expected) => {
  answer = (socket) => socket.end(bytes, 'latin1')
  const [line, rest] = await askToUpgrade('/')
  expect(line).toMatch(expected)
  expect(rest).not.toContain('HTTP/1.1')
})

test('what any of several Connection headers names stays between us and the program', async () => {
  const named = 'connection: x-one\r\nx-one: 1\r\nconnection: close, x-two\r\nx-two: 2\r\nx-three: 3'
  answer = (socket) => send(socket, `HTTP/1.1 200 X\r\n${named}\r\ncontent-length: 2\r\n\r\nhi`)
  const { headers } = await ask('/')
  expect([headers['x-one'], headers['x-two'], headers['x-three']]).toEqual([undefined, undefined, '3'])
})

test.each(['//', '//a:b/c', '/%', '/a?b=%zz'])(
  'the program is asked for the address %s as it is',
  async (path) => {
    answer = (socket, asked) =>
      send(socket, `HTTP/1.1 200 X\r\ncontent-length: ${asked.length}\r\n\r\n${asked}`)
    expect((await ask(path)).body).toBe(path)
  },
)

const LAST = 'HTTP/1.1 200 X\r\ncontent-length: 2\r\n\r\nhi'

test('a kept connection that the program closes halfway is not used again', async () => {
  for (let n = 0; n < 5; n++) {
    answer = (socket) => socket.end(LAST)
    expect((await ask('/')).body).toBe('hi')
  }
  expect(counts).toEqual({ connections: 5, requests: 5 })
})

test('a request on a kept connection that ends under it is made again where that does no harm', async () => {
  const begin = async (): Promise<void> => {
    answer = (socket) => send(socket, LAST)
    expect((await ask('/')).status).toBe(200)
    answer = (socket) => {
      answer = (next) => send(next, LAST)
      socket.end()
    }
  }
  await begin()
  expect(await ask('/')).toMatchObject({ status: 200, body: 'hi' })
  await begin()
  expect((await ask('/', 'POST')).status).toBe(502)
  expect(counts).toEqual({ connections: 2, requests: 5 })
})
