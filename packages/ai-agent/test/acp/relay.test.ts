/** The relay of `sandlot acp` beside an agent that goes wrong. */
import { createHash } from 'node:crypto'
import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import { type Server, createServer } from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { PassThrough } from 'node:stream'
import { expect, onTestFinished, test } from 'vitest'
import { relay } from '../../src/acp/relay.ts'

/** Accepts a WebSocket, sends these bytes, and is silent. */
async function agentThatSays(bytes: Buffer): Promise<string> {
  const folder = mkdtempSync(join(tmpdir(), 'sandlot-relay-'))
  const path = join(folder, 'agent.sock')
  const server: Server = createServer()
  server.on('upgrade', ({ headers }, socket) => {
    const accept = createHash('sha1')
      .update(`${headers['sec-websocket-key']}258EAFA5-E914-47DA-95CA-C5AB0DC85B11`)
      .digest('base64')
    socket.on('error', () => undefined)
    socket.write(
      `HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: ${accept}\r\n\r\n`,
    )
    socket.write(bytes)
    onTestFinished(() => void socket.destroy())
  })
  onTestFinished(() => {
    server.close()
    rmSync(folder, { recursive: true, force: true })
  })
  server.listen(path)
  await once(server, 'listening')
  return path
}

test('an agent that sends what is no WebSocket frame has left, like one that is gone', async () => {
  // A reserved bit: the protocol is broken.
  const path = await agentThatSays(Buffer.from([0xf1, 0x01, 0x61]))
  expect(await relay(path, { input: new PassThrough(), output: new PassThrough() })).toBe('agent_left')
})
