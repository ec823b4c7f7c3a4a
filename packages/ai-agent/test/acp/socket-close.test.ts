import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import { request } from 'node:http'
import type { Socket } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { ACP_PATH, listenOnSocket } from '../../src/acp/socket.ts'

const notAsked = (): Promise<never> => Promise.reject(new Error('nobody asked'))

test('a client that breaks the protocol while the agent goes away keeps it from nothing', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'sandlot-socket-'))
  const path = join(folder, 'agent.sock')
  const log = { info: () => undefined, warn: () => undefined }
  const server = await listenOnSocket({
    path,
    serve: () => undefined,
    status: notAsked,
    listTools: notAsked,
    log,
  })
  try {
    const asking = request({
      socketPath: path,
      path: ACP_PATH,
      headers: {
        connection: 'Upgrade',
        upgrade: 'websocket',
        'sec-websocket-version': '13',
        'sec-websocket-key': Buffer.alloc(16).toString('base64'),
      },
    })
    asking.end()
    const [, socket] = (await once(asking, 'upgrade')) as [unknown, Socket]
    socket.on('error', () => undefined)
    // It answers the close with a frame whose reserved bits are set.
    socket.once('data', () => socket.write(Buffer.from([0xf1, 0x01, 0x61])))
    await expect(server.close()).resolves.toBeUndefined()
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
})
