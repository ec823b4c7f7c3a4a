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

/**
 * Accepts a WebSocket and sends these bytes: together with its answer, or after the first message.
 */
async function agentThatSays(bytes: Buffer, when: 'at once' | 'later'): Promise<string> {
  const folder = mkdtempSync(join(tmpdir(), 'sandlot-relay-'))
  const path = join(folder, 'agent.sock')
  const server: Server = createServer()
  server.on('upgrade', ({ headers }, socket) => {
    const accept = createHash('sha1')
      .update(`${headers['sec-websocket-key']}258EAFA5-E914-47DA-95CA-C5AB0DC85B11`)
      .digest('base64')
    socket.on('error', () => undefined)
    if (when === 'later') socket.once('data', () => socket.write(bytes))
    socket.write(
      `HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: ${accept}\r\n\r\n`,
    )
    if (when === 'at once') socket.write(bytes)
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

// A reserved bit: the protocol is broken.
const NO_FRAME = Buffer.from([0xf1, 0x01, 0x61])

test.each(['at once', 'later'] as const)(
  'an agent that sends %s what is no WebSocket frame has left, like one that is gone',
  async (when) => {
    const input = new PassThrough()
    const relayed = relay(await agentThatSays(NO_FRAME, when), { input, output: new PassThrough() })
    input.write('{}\n')
    expect(await relayed).toBe('agent_left')
  },
)
