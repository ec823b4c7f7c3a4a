/**
 * A Docker engine that knows one image, one volume and one container, and writes down what reaches
 * it.
 */
import { once } from 'node:events'
import { mkdtemp, rm } from 'node:fs/promises'
import { createServer, type IncomingMessage } from 'node:http'
import type { Socket } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'

import { slotLabels } from '@sandlot/sandbox/names'

export const IMAGE_ID = `sha256:${'12'.repeat(32)}`
export const FULL_IMAGE_ID = `sha256:${'ab'.repeat(32)}`
export const OURS = 'a'.repeat(64)
export const STRANGER = 'b'.repeat(64)
export const OTHER_DEPLOYMENT = 'c'.repeat(64)
export const NEW_CONTAINER = 'd'.repeat(64)
export const SLOT = { slot: 'abcdefgh', uid: 31_234, volume: 'sbx-dep-abcdefgh' }

export interface Recorded {
  method: string
  url: string
  headers: IncomingMessage['headers']
  body: string
}

export interface RecordingEngine {
  dockerHost: string
  /** Everything that arrived, reads included. */
  requests: Recorded[]
  /** Only what is not a GET. */
  changes(): Recorded[]
  /** Called for an admitted attach. Default: nothing is sent. */
  onAttach(handle: (socket: Socket, head: Buffer) => void): void
  /** Answers this to what is not a GET, until called without one. */
  fail(answer?: [status: number, message: string]): void
  /** Answers are held back until this is called. */
  hold(): () => void
  /** Upgraded connections that are open, answered or not. */
  streams(): number
  close(): Promise<void>
}

const LABELS: Record<string, Record<string, string>> = {
  [OURS]: slotLabels('dep', SLOT),
  [STRANGER]: { some: 'other program' },
  [OTHER_DEPLOYMENT]: slotLabels('other', SLOT),
}

const NAMES: Record<string, string> = {
  'sbx-dep-abcdefgh': OURS,
  'sbx-dep-zzzzzzzz': STRANGER,
  'sbx-other-abcdefgh': OTHER_DEPLOYMENT,
}

function answer({ method, url }: Recorded): [number, unknown] {
  const path = url.replace(/^\/v1\.\d+/, '').split('?')[0] ?? ''
  if (path === '/_ping') return [200, 'OK']
  if (path === '/info') return [200, { NCPU: 2, CgroupVersion: '2' }]
  if (path === '/version') return [200, { ApiVersion: '1.41' }]
  if (path === '/images/sandlot/sandbox:latest/json') return [200, { Id: IMAGE_ID }]
  if (path === '/images/sandlot/sandbox-full:latest/json') return [200, { Id: FULL_IMAGE_ID }]
  if (path === '/containers/json') return [200, [{ Id: OURS }]]
  if (path === '/volumes' && method === 'GET') return [200, { Volumes: [{ Name: SLOT.volume }] }]
  if (path === `/volumes/${SLOT.volume}` && method === 'GET')
    return [200, { Name: SLOT.volume, Driver: 'local', Options: null, Labels: slotLabels('dep', SLOT) }]
  if (path === '/volumes/sbx-dep-bindbind')
    return [
      200,
      {
        Name: 'sbx-dep-bindbind',
        Driver: 'local',
        Options: { device: '/', o: 'bind' },
        Labels: slotLabels('dep', SLOT),
      },
    ]
  if (path === '/containers/create') return [201, { Id: NEW_CONTAINER, Warnings: [] }]
  if (path === '/volumes/create') return [201, {}]
  const inspected = /^\/containers\/([^/]+)\/json$/.exec(path)?.[1] ?? ''
  // Like the engine: by id, by a beginning of the id, by name.
  const id =
    NAMES[inspected] ?? Object.keys(LABELS).find((known) => inspected !== '' && known.startsWith(inspected))
  if (id !== undefined)
    return [200, { Id: id, Name: '/x', Config: { Labels: LABELS[id] }, State: { Status: 'running' } }]
  if (method === 'GET') return [404, { message: 'no such thing' }]
  return [204, '']
}

export async function recordingEngine(): Promise<RecordingEngine> {
  const folder = await mkdtemp(join(tmpdir(), 'sandlot-engine-'))
  const path = join(folder, 'docker.sock')
  const requests: Recorded[] = []
  const sockets = new Set<Socket>()
  const streams = new Set<Socket>()
  let held = Promise.resolve()
  let failure: [status: number, body: unknown] | undefined
  let attached: (socket: Socket, head: Buffer) => void = () => {}

  const record = (request: IncomingMessage, body: string): Recorded => {
    const recorded = { method: request.method ?? '', url: request.url ?? '', headers: request.headers, body }
    requests.push(recorded)
    return recorded
  }
  const server = createServer((request, response) => {
    void text(request).then(async (body) => {
      const usual = answer(record(request, body))
      const [status, value] = request.method === 'GET' ? usual : (failure ?? usual)
      await held
      response.writeHead(status, { 'Content-Type': 'application/json', 'Api-Version': '1.41' })
      response.end(typeof value === 'string' ? value : JSON.stringify(value))
    })
  })
  server.on('connection', (socket) => {
    sockets.add(socket)
    socket.on('error', () => {}).once('close', () => sockets.delete(socket))
  })
  server.on('upgrade', (request: IncomingMessage, socket: Socket, head: Buffer) => {
    record(request, '')
    streams.add(socket)
    // Only a socket that is read from notices that its other end is gone.
    const leave = (): void => void socket.destroy()
    socket
      .once('close', () => streams.delete(socket))
      .once('end', leave)
      .resume()
    void held.then(() => {
      if (socket.destroyed) return
      socket.off('end', leave).pause()
      socket.write('HTTP/1.1 101 UPGRADED\r\nConnection: Upgrade\r\nUpgrade: tcp\r\n\r\n')
      attached(socket, head)
    })
  })
  server.listen(path)
  await once(server, 'listening')
  return {
    dockerHost: `unix://${path}`,
    requests,
    fail: (given) => {
      failure = given === undefined ? undefined : [given[0], { message: given[1] }]
    },
    changes: () => requests.filter(({ method }) => method !== 'GET'),
    onAttach(handle) {
      attached = handle
    },
    hold() {
      const { promise, resolve } = Promise.withResolvers<void>()
      held = promise
      return resolve
    },
    streams: () => streams.size,
    async close() {
      for (const socket of sockets) socket.destroy()
      await new Promise((resolve) => server.close(resolve))
      await rm(folder, { recursive: true, force: true })
    },
  }
}
