/** Two ends of a real WebSocket on this machine. */
import { once } from 'node:events'
import { type Server, createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { Duplex } from 'node:stream'
import { setImmediate as nextTurn } from 'node:timers/promises'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { WebSocket, WebSocketServer } from 'ws'
import { type JsonRpcSocket, jsonRpcSocket } from '../../src/node/json-rpc-socket.ts'

interface Message {
  id: number
  text: string
}
interface End {
  socket: WebSocket
  stream: JsonRpcSocket<Message>
}

const receive = (data: Buffer, _isBinary: boolean, deliver: (message: Message) => void): void =>
  deliver(JSON.parse(data.toString('utf8')) as Message)
const message = (id: number, text = ''): Message => ({ id, text })

let server: Server
let serverEnd: End & { connection: Duplex }
let clientEnd: End

beforeEach(async () => {
  server = createServer()
  const sockets = new WebSocketServer({ noServer: true })
  const accepted = Promise.withResolvers<typeof serverEnd>()
  server.on('upgrade', (request, connection, head) => {
    sockets.handleUpgrade(request, connection, head, (socket) =>
      accepted.resolve({
        socket,
        connection,
        stream: jsonRpcSocket<Message>(socket, { receive, connection, maxWaiting: 4 }),
      }),
    )
  })
  await once(server.listen(0, '127.0.0.1'), 'listening')
  const socket = new WebSocket(`ws://127.0.0.1:${(server.address() as AddressInfo).port}`)
  clientEnd = { socket, stream: jsonRpcSocket<Message>(socket, { receive }) }
  await once(socket, 'open')
  serverEnd = await accepted.promise
})

afterEach(() => {
  clientEnd.socket.terminate()
  serverEnd.socket.terminate()
  server.close()
})

test('messages arrive in order, both ways, and the reader ends with the socket', async () => {
  const there = clientEnd.stream.writable.getWriter()
  const back = serverEnd.stream.writable.getWriter()
  const ids: number[] = []
  const reading = (async () => {
    for await (const { id } of serverEnd.stream.readable) {
      ids.push(id)
      await back.write(message(-id))
    }
  })()
  for (let id = 1; id <= 10; id++) await there.write(message(id))
  const answers = clientEnd.stream.readable.getReader()
  for (let id = 1; id <= 10; id++) expect(await answers.read()).toEqual({ done: false, value: message(-id) })
  await there.close()
  await reading
  expect(ids).toEqual([1, 2, 3, 4, 5, 6, 7, 8, 9, 10])
})

test('a reader that does not read pauses the socket, and gets everything once it does', async () => {
  const writer = clientEnd.stream.writable.getWriter()
  for (let id = 0; id < 20; id++) await writer.write(message(id))
  await expect.poll(() => serverEnd.socket.isPaused).toBe(true)
  const reader = serverEnd.stream.readable.getReader()
  for (let id = 0; id < 20; id++) expect((await reader.read()).value?.id).toBe(id)
  expect(serverEnd.socket.isPaused).toBe(false)
})

test('a write waits while more than a mebibyte is on its way', async () => {
  const writer = clientEnd.stream.writable.getWriter()
  serverEnd.socket.pause()
  const large = 'x'.repeat(16 * 1024 * 1024)
  await writer.write(message(1, large))
  let written = false
  const second = writer.write(message(2)).then(() => {
    written = true
  })
  await new Promise((resolve) => setTimeout(resolve, 50))
  expect(written).toBe(false)
  serverEnd.socket.resume()
  const reader = serverEnd.stream.readable.getReader()
  await reader.read()
  await reader.read()
  await second
})

test('what is sent at once comes before the answers that follow, and waits for a slow reader', async () => {
  const { stream } = serverEnd
  const writer = stream.writable.getWriter()
  expect(stream.send(message(1))).toBe(undefined)
  const answered = writer.write(message(2))
  clientEnd.socket.pause()
  expect(stream.send(message(3, 'x'.repeat(16 * 1024 * 1024)))).toBe(undefined)
  await answered
  let sent = false
  const slow = stream.send(message(4))?.then(() => (sent = true))
  await nextTurn()
  expect(slow).toBeDefined()
  expect(sent).toBe(false)
  clientEnd.socket.resume()
  const reader = clientEnd.stream.readable.getReader()
  const ids: (number | undefined)[] = []
  while (ids.length < 4) ids.push((await reader.read()).value?.id)
  expect(ids.filter((id) => id !== 2)).toEqual([1, 3, 4])
  expect(ids.indexOf(2)).toBeGreaterThan(0)
  await slow
  serverEnd.socket.close()
  await expect(stream.send(message(5, 'x'.repeat(2 * 1024 * 1024))) ?? writer.closed).rejects.toThrow()
})

test('the writes of one callback and its microtasks are sent together', async () => {
  const { connection, stream } = serverEnd
  const writer = stream.writable.getWriter()
  await Promise.all([1, 2, 3].map((id) => writer.write(message(id))))
  expect(connection.writableCorked).toBe(1)
  await nextTurn()
  expect(connection.writableCorked).toBe(0)
  const reader = clientEnd.stream.readable.getReader()
  for (let id = 1; id <= 3; id++) expect((await reader.read()).value?.id).toBe(id)
})

test('abort sends what was written, and terminates the socket', async () => {
  const closed = once(clientEnd.socket, 'close')
  const writer = clientEnd.stream.writable.getWriter()
  void writer.write(message(1))
  await writer.abort()
  await closed
  const { value } = await serverEnd.stream.readable.getReader().read()
  expect(value).toEqual(message(1))
})

test('cancel closes the socket, and nothing is received after it', async () => {
  const closed = once(clientEnd.socket, 'close')
  await serverEnd.stream.readable.cancel()
  expect((await closed)[0]).toBe(1005)
})
