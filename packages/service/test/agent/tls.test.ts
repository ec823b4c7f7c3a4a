/** An agent on another host: its own certificate alone is accepted, and who does not show the token is refused. */
import { once } from 'node:events'
import { mkdtemp, rm } from 'node:fs/promises'
import { createServer } from 'node:net'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { connect } from 'node:tls'
import { PROTOCOL_VERSION, agent, methods } from '@agentclientprotocol/sdk'
import { afterEach, beforeEach, expect, test } from 'vitest'
import type { WebSocket } from 'ws'
import { listenOnSocket } from '../../../ai-agent/src/acp/socket.ts'
import { openTransport } from '../../../ai-agent/src/acp/tls.ts'
import { readListen } from '../../../ai-agent/src/config/listen.ts'
import { type AgentPlace, connectAgent, openAgentStream } from '../../src/agent/agent-client.ts'
import { AgentLink } from '../../src/agent/agent-link.ts'
import { makeLog } from '../../src/log.ts'
import { waitFor } from '../support/harness.ts'

const TOKEN = 'a-token-of-this-test-alone'
const notAsked = (): Promise<never> => Promise.reject(new Error('not asked here'))

let folder: string
let port: number
let place: AgentPlace
let close: () => Promise<void>
const warned: string[] = []

async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port: free } = server.address() as AddressInfo
  server.close()
  return free
}

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'sandlot-tls-'))
  port = await freePort()
  warned.length = 0
  const listen = readListen(
    { DATABASE_URL: 'postgres://x/y', SANDLOT_AGENT_LISTEN: `127.0.0.1:${port}`, SANDLOT_AGENT_TOKEN: TOKEN },
    [],
  )
  const { address, tls } = await openTransport({
    listen,
    address: { url: '' },
    keysFolder: join(folder, 'keys'),
  })
  const server = await listenOnSocket({
    path: join(folder, 'run', 'agent.sock'),
    serve: (stream) =>
      agent({ name: 'here' })
        .onRequest(methods.agent.initialize, () => ({ protocolVersion: PROTOCOL_VERSION }))
        .connect(stream),
    streams: { take: () => (socket: WebSocket) => socket.send('bytes') } as never,
    status: notAsked,
    listTools: notAsked,
    tls,
    log: { info: () => undefined, warn: (_about, words) => void warned.push(words) },
  })
  place = { ...address, token: TOKEN }
  close = () => server.close()
})
afterEach(async () => {
  await close()
  await rm(folder, { recursive: true })
})

const why = (connecting: Promise<unknown>): Promise<string> =>
  connecting.then(
    () => 'it was accepted',
    (error: Error) => (error.cause as Error).message,
  )

test('with the token and the certificate a service has its connection and its byte streams', async () => {
  expect(place.url).toBe(`wss://127.0.0.1:${port}/acp`)
  const connection = await connectAgent(place, () => undefined)
  const stream = await openAgentStream(place, 'ticket')
  const first = once(stream, 'message')
  stream.resume()
  expect(String((await first)[0])).toBe('bytes')
  stream.terminate()
  connection.close()
})

test('a wrong token is 401, and both logs say what to mend; without one nothing is answered', async () => {
  const lines: string[] = []
  const link = new AgentLink({
    place: { ...place, token: 'another-token-than-theirs' },
    log: makeLog(
      'error',
      (text) => text,
      (line) => lines.push(line),
    ),
    onSessionChanged: () => undefined,
    onConnected: () => undefined,
    pauses: { firstMs: 5, longestMs: 10 },
  })
  await waitFor(() => lines.length > 0)
  await link.close()
  expect(lines.join()).toContain('the agent refuses SANDLOT_AGENT_TOKEN')
  expect(lines).toHaveLength(1)
  expect(warned).toEqual([
    'refused a client without SANDLOT_AGENT_TOKEN: services and agents must have the same',
  ])
  const status = new Promise<string>((resolve) => {
    const socket = connect(
      { port, host: '127.0.0.1', rejectUnauthorized: false, minVersion: 'TLSv1.3' },
      () => socket.write('GET /status HTTP/1.1\r\nhost: x\r\n\r\n'),
    )
    socket.once('data', (data) => resolve(data.toString().slice(0, 12)))
  })
  expect(await status).toBe('HTTP/1.1 401')
})

test('another certificate is refused before the token is shown, and so is TLS 1.2', async () => {
  const other = await openTransport({
    listen: { host: '', port: 1, advertised: 'x:1', token: TOKEN },
    address: { url: '' },
    keysFolder: join(folder, 'keys'),
  })
  expect(await why(connectAgent({ ...place, certificate: other.tls?.certificate }, () => undefined))).toMatch(
    /certificate/,
  )
  const old = connect({ port, host: '127.0.0.1', rejectUnauthorized: false, maxVersion: 'TLSv1.2' })
  const [error] = (await once(old, 'error')) as [Error]
  expect(error.message).toMatch(/protocol version/i)
  expect(warned).toEqual([])
})

test('settings that cannot be together are said', () => {
  const problems: string[] = []
  readListen({ SANDLOT_AGENT_ADVERTISE: 'a:1' }, problems)
  readListen({ SANDLOT_AGENT_LISTEN: '0.0.0.0:7443' }, problems)
  expect(problems).toEqual([
    'SANDLOT_AGENT_ADVERTISE: needs SANDLOT_AGENT_LISTEN',
    'SANDLOT_AGENT_LISTEN: needs DATABASE_URL',
  ])
  const ours = {
    DATABASE_URL: 'x',
    SANDLOT_AGENT_LISTEN: '[::]:7443',
    SANDLOT_AGENT_ADVERTISE: 'agent-1:7443',
  }
  expect(readListen(ours, problems)).toEqual({
    host: '::',
    port: 7443,
    advertised: 'agent-1:7443',
    token: undefined,
  })
})
