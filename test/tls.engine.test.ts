/**
 * The profile `tls` of the compose file: Debian's Caddy with our Caddyfile, before a server of this test, by the
 * authority that it makes itself. An ordinary run uses the image that is there; a full one builds it.
 */
import { execFile, spawnSync } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { createServer, type IncomingMessage, type Server } from 'node:http'
import { request } from 'node:https'
import { type AddressInfo, createServer as createTcpServer } from 'node:net'
import type { Duplex } from 'node:stream'
import { buffer } from 'node:stream/consumers'
import { promisify } from 'node:util'
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest'
import { campaign } from './campaign.ts'
import { ROOT } from './source-files.ts'

const run = promisify(execFile)
const MINUTE = 60_000
const IMAGE = 'sandlot/caddy:latest'

const has = (image: string): boolean =>
  spawnSync('docker', ['image', 'inspect', image], { stdio: 'ignore' }).status === 0
const base = ['debian:bookworm-slim', 'sandlot/base:bookworm'].find(has)
const reason =
  base === undefined
    ? 'no base image'
    : !campaign.full && !has(IMAGE)
      ? 'the image of Caddy is built by --full'
      : undefined

const name = `sandlot-test-tls-${randomBytes(3).toString('hex')}`
const docker = async (...args: string[]): Promise<string> =>
  (await run('docker', args, { cwd: ROOT, maxBuffer: 2 ** 26 })).stdout

async function freePort(): Promise<number> {
  const server = createTcpServer().listen(0)
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  server.close()
  return port
}

/** Says what arrived, and after an upgrade sends every byte back. */
async function echoServer(): Promise<Server> {
  const server = createServer((incoming, response) => {
    void buffer(incoming).then((body) => {
      const { host, 'x-forwarded-proto': protocol, 'x-forwarded-for': client } = incoming.headers
      response.end(JSON.stringify({ host, protocol, client, bytes: body.length, url: incoming.url }))
    })
  })
  server.on('upgrade', (_, socket) => {
    socket.write('HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n')
    socket.pipe(socket)
  })
  server.listen(0)
  await once(server, 'listening')
  return server
}

describe.skipIf(reason)(`HTTPS by the profile tls${reason ? ` (skipped: ${reason})` : ''}`, () => {
  let server: Server
  let ca: string
  let ports: { http: number; https: number }

  beforeAll(async () => {
    server = await echoServer()
    ports = { http: await freePort(), https: await freePort() }
    if (campaign.full) await docker('build', '--build-arg', `BASE=${base}`, '-t', IMAGE, 'docker/caddy')
    const environment = {
      SANDLOT_PUBLIC_URL: `https://chat.localhost:${ports.https}`,
      SANDLOT_PREVIEW_HOST: 'preview.localhost',
      SANDLOT_UPSTREAM: `host.docker.internal:${(server.address() as AddressInfo).port}`,
      HTTP_PORT: ports.http,
      HTTPS_PORT: ports.https,
      CADDY_TLS: 'internal',
      CADDY_PREVIEW_TLS: 'internal',
    }
    // Hardening of the compose file.
    const hardened = [
      '--read-only',
      '--cap-drop=ALL',
      '--security-opt=no-new-privileges:true',
      '--tmpfs=/tmp',
      '--sysctl=net.ipv4.ip_unprivileged_port_start=0',
    ]
    const options = [
      `--name=${name}`,
      '--add-host=host.docker.internal:host-gateway',
      `--volume=${ROOT}/docker/caddy/Caddyfile:/etc/caddy/Caddyfile:ro`,
      ...hardened,
      ...Object.values(ports).flatMap((port) => ['-p', `127.0.0.1:${port}:${port}`]),
      ...Object.entries(environment).flatMap(([key, value]) => ['-e', `${key}=${value}`]),
    ]
    await docker('run', '-d', ...options, IMAGE)
    const root = '/data/caddy/pki/authorities/local/root.crt'
    ca = await vi.waitFor(async () => {
      const text = await docker('exec', name, 'cat', root)
      if (!text.includes('BEGIN')) throw new Error('its authority has no certificate yet')
      return text
    }, MINUTE)
    await vi.waitFor(() => ask('chat.localhost'), MINUTE)
  }, 10 * MINUTE)

  afterAll(async () => {
    await docker('rm', '-f', '-v', name)
    server.close()
  })

  /** Certificates are checked, by the authority of this Caddy alone. */
  async function ask(host: string, body = Buffer.alloc(0)): Promise<Record<string, unknown>> {
    const options = {
      host: '127.0.0.1',
      port: ports.https,
      servername: host,
      ca,
      method: 'POST',
      agent: false,
    }
    const asked = request({ ...options, path: '/a?b=c', headers: { host: `${host}:${ports.https}` } })
    asked.end(body)
    const [response] = (await once(asked, 'response')) as [IncomingMessage]
    return JSON.parse(String(await buffer(response))) as Record<string, unknown>
  }

  test('a request arrives with its host, its client and that it was https, and a body of 64 MiB too', async () => {
    expect(await ask('chat.localhost', Buffer.alloc(64 * 2 ** 20))).toEqual({
      host: `chat.localhost:${ports.https}`,
      protocol: 'https',
      client: expect.stringMatching(/^\d+\.\d+\.\d+\.\d+$/),
      bytes: 64 * 2 ** 20,
      url: '/a?b=c',
    })
  })

  test('a preview has a host of its own, with a certificate', async () => {
    const host = 'abcdefghijklmnopqrstuvwxyz.preview.localhost'
    expect(await ask(host)).toMatchObject({ host: `${host}:${ports.https}`, protocol: 'https' })
  })

  test('a WebSocket goes through', async () => {
    const headers = {
      host: `chat.localhost:${ports.https}`,
      connection: 'Upgrade',
      upgrade: 'websocket',
      'sec-websocket-version': '13',
      'sec-websocket-key': randomBytes(16).toString('base64'),
    }
    const options = { host: '127.0.0.1', port: ports.https, servername: 'chat.localhost', ca, agent: false }
    const asked = request({ ...options, path: '/ws', headers })
    asked.end()
    const [answer, socket] = (await once(asked, 'upgrade')) as [IncomingMessage, Duplex]
    expect(answer.statusCode).toBe(101)
    socket.write('hello')
    const [data] = (await once(socket, 'data')) as [Buffer]
    expect(String(data)).toBe('hello')
    socket.destroy()
  })

  test('http is sent to https', async () => {
    const answer = await fetch(`http://127.0.0.1:${ports.http}/x`, {
      headers: { host: 'chat.localhost' },
      redirect: 'manual',
    })
    expect(answer.status).toBe(308)
  })
})
