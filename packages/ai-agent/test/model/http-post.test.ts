/** One POST and its answer, against real servers. */
import { execFile, execFileSync } from 'node:child_process'
import { getEventListeners, once } from 'node:events'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import * as http from 'node:http'
import * as https from 'node:https'
import { type AddressInfo, type Server, connect, createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { promisify } from 'node:util'
import * as zlib from 'node:zlib'
import { afterEach, describe, expect, test } from 'vitest'
import { httpPost } from '../../src/model/http-post.ts'
import { BodyReader } from '../../src/model/sse.ts'
import { transportError } from '../../src/model/transport.ts'

const HEADERS = {
  authorization: 'Bearer secret',
  'x-api-key': 'secret',
  'api-key': 'secret',
  'content-type': 'application/json',
}
const never = new AbortController().signal

const servers: Server[] = []
afterEach(() => servers.splice(0).forEach((server) => void server.close()))

async function listen(server: Server): Promise<URL> {
  servers.push(server.listen(0, '127.0.0.1'))
  await once(server, 'listening')
  return new URL(`http://127.0.0.1:${(server.address() as AddressInfo).port}/v1?a=b`)
}

const serve = (handler: (...exchange: Parameters<http.RequestListener>) => unknown): Promise<URL> =>
  listen(http.createServer((request, response) => void handler(request, response)))

const send = (url: URL, signal = never) => httpPost(url, HEADERS, '{"model":"m"}', signal)

async function post(url: URL, signal = never) {
  const { status, headers, read } = await send(url, signal)
  const pieces: Uint8Array[] = []
  const broken = await read((bytes) => pieces.push(bytes) < 0)
  return { status, headers, text: Buffer.concat(pieces).toString('utf8'), broken }
}

describe('a compressed body', () => {
  const codings: [string, string, () => zlib.Gzip | zlib.BrotliCompress][] = [
    ['gzip', 'gzip', () => zlib.createGzip()],
    ['deflate', 'deflate', () => zlib.createDeflate()],
    ['deflate without a header', 'deflate', () => zlib.createDeflateRaw()],
    ['br', 'br', () => zlib.createBrotliCompress()],
  ]
  test.each(codings)('%s: each piece comes when it is sent', async (_, coding, compress) => {
    const encoder = compress()
    const url = await serve((_request, response) => {
      response.writeHead(200, { 'content-encoding': coding })
      encoder.pipe(response)
      encoder.write('data: ä\n\n')
      encoder.flush()
    })
    const { read } = await send(url)
    let got = ''
    const broken = await read((bytes) => {
      got += Buffer.from(bytes).toString('utf8')
      if (got === 'data: ä\n\n') encoder.end('data: b\n\n')
      return false
    })
    expect({ got, broken }).toEqual({ got: 'data: ä\n\ndata: b\n\n', broken: undefined })
  })

  test('that lacks its last bytes is whole all the same', async () => {
    const cut = zlib.gzipSync('data: a\n\n').subarray(0, -8)
    const url = await serve((_, response) => response.writeHead(200, { 'content-encoding': 'gzip' }).end(cut))
    expect(await post(url)).toMatchObject({ text: 'data: a\n\n', broken: undefined })
  })

  test('that is none is a broken answer', async () => {
    const url = await serve((_, response) =>
      response.writeHead(200, { 'content-encoding': 'gzip' }).end('no'),
    )
    expect(await post(url)).toMatchObject({ text: '', broken: { code: 'Z_DATA_ERROR' } })
  })
})

describe('a connection', () => {
  /** Answers `data: a`, and ends the answer when the returned function is called. */
  async function streaming() {
    const open: http.ServerResponse[] = []
    const sockets: http.IncomingMessage['socket'][] = []
    const url = await serve((request, response) => {
      sockets.push(request.socket)
      open.push(response)
      response.write('data: a\n\n')
    })
    return { url, sockets, end: () => open.splice(0).forEach((response) => response.end()) }
  }

  test('serves the next request where the end comes after what was needed', async () => {
    const { url, sockets, end } = await streaming()
    const ask = async (): Promise<void> => {
      const { read } = await send(url)
      await read(() => true)
      end()
    }
    await ask()
    // Until the client has read the end it opens others.
    await expect.poll(() => ask().then(() => sockets.at(-1) === sockets[0])).toBe(true)
  })

  test('is closed when the end does not follow', async () => {
    const { url, sockets } = await streaming()
    const { read } = await send(url)
    expect(await read(() => true)).toBeUndefined()
    await expect.poll(() => sockets[0]?.destroyed).toBe(true)
  })

  test('that breaks in the middle is no end, whether it is closed or reset', async () => {
    for (const way of ['destroy', 'resetAndDestroy'] as const) {
      const { url, sockets } = await streaming()
      const { read } = await send(url)
      const broken = await read(() => {
        sockets[0]?.[way]()
        return false
      })
      expect(broken).toBeInstanceOf(Error)
      expect(transportError(broken, url, false).class).toBe('stream_interrupted')
    }
  })

  test('what its reader throws is thrown, and closes it', async () => {
    const { url, sockets } = await streaming()
    const { read } = await send(url)
    const thrown = read(() => {
      throw new Error('of the reader')
    })
    await expect(thrown).rejects.toThrow('of the reader')
    await expect.poll(() => sockets[0]?.destroyed).toBe(true)
  })
})

describe('an abort', () => {
  test('before the head, in the body, and after the end', async () => {
    const sockets: http.IncomingMessage['socket'][] = []
    const url = await serve((request, response) => {
      sockets.push(request.socket)
      if (sockets.length === 2) response.write('data: a\n\n')
      if (sockets.length === 3) response.end('whole')
    })
    const [head, body, after] = Array.from({ length: 3 }, () => new AbortController())
    const waiting = send(url, head?.signal)
    await expect.poll(() => sockets.length).toBe(1)
    head?.abort('cancelled')
    await expect(waiting).rejects.toBe('cancelled')

    const { read } = await send(url, body?.signal)
    const broken = await read(() => {
      body?.abort('cancelled')
      return false
    })
    expect(broken).toBe('cancelled')
    await expect.poll(() => sockets.map((socket) => socket.destroyed)).toEqual([true, true])

    expect((await post(url, after?.signal)).text).toBe('whole')
    expect(after === undefined ? [] : getEventListeners(after.signal, 'abort')).toEqual([])
    after?.abort('cancelled')
    expect(sockets[2]?.destroyed).toBe(false)
    await expect(send(url, after?.signal)).rejects.toBe('cancelled')
    expect(sockets).toHaveLength(3)
  })

  test('while it connects: it is rejected at once, and the connection closed when it is there', async () => {
    const arrived = Promise.withResolvers<void>()
    const server = createServer(
      (socket) => void socket.on('error', () => undefined).on('close', arrived.resolve),
    )
    const url = await listen(server)
    const stop = new AbortController()
    const connecting = send(url, stop.signal)
    stop.abort('cancelled')
    await expect(connecting).rejects.toBe('cancelled')
    await arrived.promise
  })
})

describe('a redirect', () => {
  const seen = async (request: http.IncomingMessage) => ({
    method: request.method,
    url: request.url,
    key: request.headers.authorization,
    type: request.headers['content-type'],
    body: await text(request),
  })

  test.each([
    [307, { method: 'POST', key: HEADERS.authorization, type: 'application/json', body: '{"model":"m"}' }],
    [308, { method: 'POST', key: HEADERS.authorization, type: 'application/json', body: '{"model":"m"}' }],
    [302, { method: 'GET', key: HEADERS.authorization, type: undefined, body: '' }],
    [303, { method: 'GET', key: HEADERS.authorization, type: undefined, body: '' }],
  ])('%i within the origin', async (status, expected) => {
    const requests: unknown[] = []
    const url = await serve(async (request, response) => {
      requests.push(await seen(request))
      if (request.url === '/v2/x') response.end('there')
      else response.writeHead(status, { location: '/v2/x' }).end('moved')
    })
    expect(await post(url)).toMatchObject({ status: 200, text: 'there' })
    expect(requests[1]).toEqual({ url: '/v2/x', ...expected })
  })

  test('to another origin: the key stays here', async () => {
    const requests: unknown[] = []
    const headers: unknown[] = []
    const other = await serve(async (request, response) => {
      requests.push(await seen(request))
      headers.push(request.headers)
      response.end('there')
    })
    const url = await serve((_, response) => response.writeHead(307, { location: other.href }).end())
    expect((await post(url)).text).toBe('there')
    expect(requests).toMatchObject([{ method: 'POST', key: undefined, body: '{"model":"m"}' }])
    expect(JSON.stringify(headers)).not.toContain('secret')
  })

  test('without end, or to what is no web address, is a failure', async () => {
    const url = await serve((request, response) => {
      const location = request.url === '/file' ? 'file:///etc/passwd' : '/again'
      response.writeHead(307, { location }).end()
    })
    await expect(post(url)).rejects.toThrow('redirects without end')
    await expect(post(new URL('/file', url))).rejects.toThrow('redirects to file:')
  })
})

test('informational answers come before the head; headers may be of any bytes', async () => {
  const url = await listen(
    createServer((socket) => {
      socket.on('error', () => undefined)
      socket.once('data', () =>
        socket.end('HTTP/1.1 103 Early Hints\r\nlink: x\r\n\r\nHTTP/1.1 429 no\r\nx-note: 余额\r\n\r\nbusy'),
      )
    }),
  )
  const answer = await post(url)
  expect(answer).toMatchObject({ status: 429, text: 'busy', broken: undefined })
  expect(Buffer.from(answer.headers.get('x-note') ?? '', 'latin1').toString('utf8')).toBe('余额')
})

test('a certificate that is not trusted: the sentence says so', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'http-post-'))
  const [key, cert] = [join(folder, 'key.pem'), join(folder, 'cert.pem')]
  const asked = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes', '-subj', '/CN=x']
  execFileSync('openssl', ['req', '-x509', ...asked, '-keyout', key, '-out', cert], { stdio: 'pipe' })
  const url = await listen(https.createServer({ key: readFileSync(key), cert: readFileSync(cert) }))
  rmSync(folder, { recursive: true })
  url.protocol = 'https:'
  const thrown: unknown = await post(url).catch((error: unknown) => error)
  expect(transportError(thrown, url, false)).toMatchObject({
    class: 'unreachable',
    message: expect.stringContaining('its certificate is self-signed'),
  })
})

test('the proxy of the environment is used, but for the hosts that it exempts', async () => {
  const url = await serve((_, response) => response.end('there'))
  const through: (string | undefined)[] = []
  const proxy = http.createServer().on('connect', (request, socket) => {
    through.push(request.url)
    const onwards = connect(Number(url.port), '127.0.0.1', () => {
      socket.write('HTTP/1.1 200 OK\r\n\r\n')
      socket.pipe(onwards).pipe(socket)
    })
  })
  const { port } = await listen(proxy)
  const script = `
    const { httpPost } = await import(${JSON.stringify(new URL('../../src/model/http-post.ts', import.meta.url).href)})
    for (const url of ['http://far.example/v1', ${JSON.stringify(url.href)}]) {
      const { read } = await httpPost(new URL(url), {}, '{}', new AbortController().signal)
      await read((bytes) => void process.stdout.write(bytes))
    }
    process.exit()`
  const env = {
    PATH: process.env['PATH'],
    NODE_USE_ENV_PROXY: '1',
    HTTP_PROXY: `http://127.0.0.1:${port}`,
    NO_PROXY: '127.0.0.1',
  }
  const options = ['--conditions=sandlot-source', '--input-type=module', '--eval', script]
  expect((await promisify(execFile)(process.execPath, options, { env })).stdout).toBe('therethere')
  expect(through).toEqual(['far.example:80'])
})

test('a busy process: bytes that came in time are no silence', async () => {
  const connection = new AbortController()
  const block = (ms: number): void => {
    for (const until = performance.now() + ms; performance.now() < until;);
  }
  let answering: http.ServerResponse | undefined
  const url = await serve((_, response) => {
    answering = response
    response.write('data: a\n\n')
  })
  const { read } = await send(url, connection.signal)
  const reader = new BodyReader(read, connection, { idleMs: 200, progressMs: 60_000 })
  let got = ''
  const broken = await reader.read((bytes) => {
    got += Buffer.from(bytes).toString('utf8')
    if (got === 'data: a\n\n') {
      answering?.end('data: b\n\n')
      block(400)
    }
    return false
  })
  expect({ got, broken }).toEqual({ got: 'data: a\n\ndata: b\n\n', broken: undefined })
})
