import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { STREAM_PATH } from '@sandlot/shared/acp/meta'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { WebSocket } from 'ws'
import { ByteStreams } from '../../src/acp/byte-streams.ts'
import { listenOnSocket } from '../../src/acp/socket.ts'

const notAsked = (): Promise<never> => Promise.reject(new Error('nobody asked'))
const log = { info: () => undefined, warn: () => undefined }

let folder: string
let path: string
let server: Awaited<ReturnType<typeof listenOnSocket>>

async function listen(streams: ByteStreams): Promise<void> {
  server = await listenOnSocket({
    path,
    serve: () => undefined,
    streams,
    status: notAsked,
    listTools: notAsked,
    log,
  })
}

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'sandlot-streams-'))
  path = join(folder, 'agent.sock')
})
afterEach(async () => {
  await server.close()
  rmSync(folder, { recursive: true, force: true })
})

/** `open`, or the status of the refusal. */
async function opening(ticket: string): Promise<WebSocket | number> {
  const socket = new WebSocket(`ws+unix://${path}:${STREAM_PATH}${ticket}`)
  socket.on('error', () => undefined)
  return new Promise((resolve) => {
    socket.once('open', () => resolve(socket))
    socket.once('unexpected-response', (_request, { statusCode = 0 }) => resolve(statusCode))
  })
}

test('a ticket opens what it was offered for, once', async () => {
  const streams = new ByteStreams()
  await listen(streams)
  const ticket = streams.offer((socket) => socket.on('message', (data: Buffer) => socket.send(data)))
  const socket = await opening(ticket)
  if (!(socket instanceof WebSocket)) throw new Error(`refused: ${socket}`)
  const echoed = once(socket, 'message')
  socket.send(Buffer.from([1, 0, 255]))
  expect(await echoed).toEqual([Buffer.from([1, 0, 255]), true])
  expect(await opening(ticket)).toBe(404)
  expect(await opening('another')).toBe(404)

  const closed = once(socket, 'close')
  await server.close()
  expect((await closed)[0]).toBe(1001)
})

test('a ticket that is not used in time opens nothing', async () => {
  const streams = new ByteStreams(1)
  await listen(streams)
  const ticket = streams.offer(() => {
    throw new Error('opened')
  })
  // After the ticket's own timer.
  await new Promise((resolve) => setTimeout(resolve, 5))
  expect(await opening(ticket)).toBe(404)
})

test('no more tickets are given out than may wait', () => {
  const streams = new ByteStreams()
  for (let n = 0; n < 1_000; n++) streams.offer(() => undefined)
  expect(() => streams.offer(() => undefined)).toThrow('Too many streams are being opened')
  return listen(streams)
})
