import { createServer, type RequestListener, type Server, type ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import { join } from 'node:path'

import { afterEach, beforeEach, describe, expect, test } from 'vitest'

import { createDockerBackend } from '../../../src/backends/docker/backend.ts'
import { parseDockerHost } from '../../../src/backends/docker/connection.ts'
import { createEngine } from '../../../src/backends/docker/engine.ts'
import { DEFAULT_LIMITS } from '../../../src/limits.ts'
import { testFolder } from '../../../../../test/folders.ts'

describe('DOCKER_HOST', () => {
  test.each([
    [undefined, { kind: 'unix', socketPath: '/var/run/docker.sock' }],
    ['', { kind: 'unix', socketPath: '/var/run/docker.sock' }],
    ['unix:///tmp/d.sock', { kind: 'unix', socketPath: '/tmp/d.sock' }],
    ['unix://', { kind: 'unix', socketPath: '/var/run/docker.sock' }],
    ['/tmp/d.sock', { kind: 'unix', socketPath: '/tmp/d.sock' }],
    ['tcp://10.0.0.1:2375', { kind: 'tcp', host: '10.0.0.1', port: 2375 }],
    ['tcp://docker', { kind: 'tcp', host: 'docker', port: 2375 }],
    ['tcp://[::1]:99', { kind: 'tcp', host: '::1', port: 99 }],
    ['http://docker', { kind: 'tcp', host: 'docker', port: 80 }],
    ['https://docker:2376/', { kind: 'tcp', host: 'docker', port: 2376, tls: {} }],
  ])('%j', (text, address) => {
    expect(parseDockerHost(text)).toMatchObject(address)
  })

  test('with certificates a bare tcp address means the TLS port', () => {
    expect(parseDockerHost('tcp://docker', { ca: 'x' })).toMatchObject({ port: 2376, tls: { ca: 'x' } })
  })

  test.each([
    'ssh://me@host',
    'npipe:////./pipe/docker',
    'fd://',
    'unix://relative',
    'docker:2375',
    'tcp://host:99999',
    'tcp://host/path',
    'nonsense',
  ])('%j is refused with what to write instead', (text) => {
    expect(() => parseDockerHost(text)).toThrow(
      expect.objectContaining({ code: 'invalid_arguments', message: expect.stringContaining('unix:///') }),
    )
  })
})

const id = 'a'.repeat(64)
const inspected = {
  Id: id,
  Name: '/x',
  State: { Status: 'created' },
  Config: { Labels: { 'sandlot.deployment': 'dep', 'sandlot.role': 'sandbox' } },
}

function send(response: ServerResponse, status: number, body: object): void {
  response.writeHead(status, { 'Content-Type': 'application/json' }).end(JSON.stringify(body))
}

describe('an engine that is not as it should be', () => {
  let folder: string
  let socketPath: string
  let server: Server | undefined
  beforeEach(async () => {
    folder = testFolder('engine')
    socketPath = join(folder, 'd.sock')
  })
  afterEach(async () => {
    server?.closeAllConnections()
    await new Promise((resolve) => (server ? server.close(resolve) : resolve(undefined)))
    server = undefined
  })
  const engine = () => createEngine({ kind: 'unix', socketPath, shown: socketPath })
  const answerWith = (listener: RequestListener, at: string | number = socketPath) =>
    new Promise<void>((resolve) => {
      server = createServer(listener).listen(at, resolve)
    })
  /** Like an engine for `/_ping`, and `then` for everything else. */
  const pinging =
    (then: RequestListener, version = '1.41'): RequestListener =>
    (request, response) =>
      request.url === '/_ping'
        ? response.setHeader('Api-Version', version).end('OK')
        : then(request, response)
  /** The other ends of all attach streams from now on, of an engine that answers `then` after each. */
  const attaching = (asked: string[], then: RequestListener, at?: string | number): Promise<Socket[]> => {
    const attached: Socket[] = []
    const opened = answerWith(
      pinging((request, response) => {
        asked.push(`${request.method} ${request.url?.replace(/^\/v[\d.]+|\?.*$/g, '')}`)
        then(request, response)
      }),
      at,
    )
    server?.on('upgrade', ({ url }, socket: Socket) => {
      asked.push(`attach ${url?.split('/')[3]}`)
      attached.push(socket)
      socket
        .on('error', () => {})
        .on('end', () => socket.end())
        .resume()
      socket.write('HTTP/1.1 101 UPGRADED\r\nConnection: Upgrade\r\nUpgrade: tcp\r\n\r\n')
    })
    return opened.then(() => attached)
  }
  const info = (deadlineMs = 5_000, signal?: AbortSignal) =>
    engine().call('describe itself', deadlineMs, (docker) => docker.info(), signal)

  test.each(['task 0a1b: already exists: unknown', 'id already in use'])(
    'a container that it can never start again (%s) is taken away, so that another takes its place',
    async (message) => {
      const asked: string[] = []
      const attached = await attaching(asked, ({ method }, response) => {
        if (method === 'DELETE') response.writeHead(204).end()
        else if (method === 'POST') send(response, 500, { message })
        else send(response, 200, inspected)
      })
      const backend = createDockerBackend({ deployment: 'dep', dockerHost: `unix://${socketPath}` })
      await expect(backend.open({ id, state: 'created' })).rejects.toMatchObject({
        code: 'sandbox_lost',
        message: /the files stay/,
      })
      expect(asked).toContain(`DELETE /containers/${id}`)
      await expect.poll(() => attached[0]?.closed).toBe(true)
      await backend.inventory.close()
    },
  )

  test('is attached to before the start, and one that runs is not asked to start', async () => {
    const asked: string[] = []
    await attaching(asked, ({ method }, response) =>
      method === 'POST' ? response.writeHead(204).end() : send(response, 200, inspected),
    )
    const backend = createDockerBackend({ deployment: 'dep', dockerHost: `unix://${socketPath}` })
    const opened = [
      await backend.open({ id, state: 'stopped' }),
      await backend.open({ id, state: 'running' }),
    ]
    expect(opened.map(({ keyId }) => keyId)).toEqual([id, id])
    expect(asked).toEqual([
      `GET /containers/${id}/json`,
      `attach ${id}`,
      `POST /containers/${id}/start`,
      `attach ${id}`,
    ])
    for (const { stream } of opened) stream.destroy()
  })

  test('an attach stream that breaks during the start is returned destroyed, and ends nothing', async () => {
    const then: RequestListener = ({ method }, response) => {
      if (method !== 'POST') return send(response, 200, inspected)
      attached[0]?.resetAndDestroy()
      setTimeout(() => response.writeHead(204).end(), 50)
    }
    const attached = await attaching([], then, 0)
    const address = server?.address()
    const port = typeof address === 'object' ? address?.port : undefined
    const backend = createDockerBackend({ deployment: 'dep', dockerHost: `tcp://127.0.0.1:${port}` })
    const { stream } = await backend.open({ id, state: 'stopped' })
    expect(stream.errored).toMatchObject({ code: 'ECONNRESET' })
  })

  test('no socket: says where it looked and what to do', async () => {
    await expect(info()).rejects.toMatchObject({
      name: 'SandboxError',
      code: 'engine_unavailable',
      message: expect.stringMatching(/d\.sock.*Start it.*DOCKER_HOST/),
    })
    await expect(engine().attach('abc')).rejects.toMatchObject({ code: 'engine_unavailable' })
  })

  test('no gate: what is missing is called by its name', async () => {
    const backend = createDockerBackend({ deployment: 'dep', dockerHost: socketPath, gate: true })
    await expect(backend.list({})).rejects.toMatchObject({
      code: 'engine_unavailable',
      unreachable: true,
      message: expect.stringMatching(/^engine-gate.*d\.sock.*restarted automatically/),
    })
    await backend.inventory.close()
  })

  test.each([
    ['Unknown runtime specified nonesuch', /no runtime "nonesuch".*SANDLOT_SANDBOX_RUNTIME/],
    ['unknown or invalid runtime name: nonesuch', /no runtime "nonesuch".*SANDLOT_SANDBOX_RUNTIME/],
    [`container create: opening seccomp profile failed: open {${'x'.repeat(9_000)}`, /^.{20,300}$/],
    [`anything else ${'x'.repeat(9_000)}`, /^The Docker engine could not describe itself .{500,700}$/],
  ])('a refusal is told in a sentence: %.40s', async (message, expected) => {
    await answerWith(
      pinging((_, response) => {
        response.writeHead(400, { 'Content-Type': 'application/json' }).end(JSON.stringify({ message }))
      }),
    )
    await expect(info()).rejects.toMatchObject({
      code: 'engine_unavailable',
      message: expect.stringMatching(expected),
    })
  })

  test('an engine that enforces no limits, as a rootless one on cgroup v1, is given no sandbox to make', async () => {
    const asked: string[] = []
    const said = { NCPU: 2, MemoryLimit: false, PidsLimit: false, CpuCfsQuota: false, Id: 'sha256:0' }
    await answerWith(
      pinging((request, response) => {
        asked.push(`${request.method} ${request.url}`)
        response.setHeader('Content-Type', 'application/json').end(JSON.stringify(said))
      }),
    )
    const backend = createDockerBackend({ deployment: 'test', dockerHost: `unix://${socketPath}` })
    const spec = { name: 'x', slot: 'x', uid: 30_000, volume: 'x', image: 'x', limits: DEFAULT_LIMITS }
    await expect(backend.create({ ...spec, labels: {} })).rejects.toMatchObject({
      code: 'unsafe_host',
      message: expect.stringMatching(/no limits of memory, processes, CPU.*cgroup v2/),
    })
    await backend.inventory.close()
    expect(asked.filter((request) => request.startsWith('POST'))).toEqual([])
  })

  test('a failure is not remembered: the engine may come up later', async () => {
    const one = engine()
    await expect(one.apiVersion()).rejects.toMatchObject({ code: 'engine_unavailable' })
    await answerWith(pinging(() => {}))
    expect(await one.apiVersion()).toBe('1.41')
  })

  test('the API version is the engine’s, but never newer than what we know', async () => {
    await answerWith(
      pinging(
        (request, response) =>
          response.setHeader('Content-Type', 'application/json').end(JSON.stringify({ path: request.url })),
        '1.99',
      ),
    )
    expect(await engine().apiVersion()).toBe('1.52')
    expect(await info()).toEqual({ path: '/v1.52/info' })
  })

  test('something else listens there', async () => {
    await answerWith((_request, response) => response.writeHead(404).end('hello'))
    await expect(info()).rejects.toMatchObject({
      code: 'engine_unavailable',
      message: expect.stringContaining('not answer like a Docker engine'),
    })
  })

  test('it answers nothing: the deadline ends the call', async () => {
    await answerWith(pinging(() => {}))
    await expect(info(50)).rejects.toMatchObject({
      code: 'engine_unavailable',
      message: expect.stringMatching(/did not describe itself within/),
    })
  })

  test('the caller stops waiting', async () => {
    await answerWith(pinging(() => {}))
    await expect(info(5_000, AbortSignal.timeout(30))).rejects.toMatchObject({ code: 'cancelled' })
  })

  test('it closes the connection', async () => {
    await answerWith(pinging((request) => request.socket.destroy()))
    await expect(info()).rejects.toMatchObject({
      code: 'engine_unavailable',
      message: expect.stringContaining('broke while trying to describe itself'),
    })
  })

  test.each([
    [500, 'it broke', 'engine_unavailable', /could not describe itself.*it broke/],
    [500, 'write /x: no space left on device', 'engine_unavailable', /disk is full/],
    [404, 'No such container: x', 'sandbox_lost', /no longer exists/],
    [404, 'No such image: y', 'engine_unavailable', /build-images\.sh/],
  ])('HTTP %i "%s" is %s', async (status, message, code, text) => {
    await answerWith(
      pinging((_request, response) =>
        response.writeHead(status, { 'Content-Type': 'application/json' }).end(JSON.stringify({ message })),
      ),
    )
    await expect(info()).rejects.toMatchObject({ code, message: expect.stringMatching(text) })
    await expect(engine().attach('abc')).rejects.toMatchObject({ code })
  })

  test('an attach sends no body and gives the raw socket, with what came along with the answer first', async () => {
    await answerWith(pinging(() => {}))
    const seen: string[] = []
    server?.on('upgrade', (request, socket) => {
      seen.push(`${request.method} ${request.url} ${request.headers['content-length']}`)
      socket.on('data', (data: Buffer) => seen.push(data.toString()))
      socket.write('HTTP/1.1 101 UPGRADED\r\nConnection: Upgrade\r\nUpgrade: tcp\r\n\r\nearly')
      socket.on('end', () => socket.end(' late'))
    })
    const stream = await engine().attach('abc')
    stream.end('in')
    let read = ''
    for await (const chunk of stream) read += String(chunk)
    expect(read).toBe('early late')
    expect(seen).toEqual(['POST /v1.41/containers/abc/attach?stream=1&stdin=1&stdout=1&stderr=1 0', 'in'])
  })
})
