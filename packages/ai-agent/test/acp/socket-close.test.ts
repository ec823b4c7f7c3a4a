import { ByteStreams } from '../../src/acp/byte-streams.ts'
import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import { request } from 'node:http'
import { type Socket, connect } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { ACP_PATH, listenOnSocket } from '../../src/acp/socket.ts'

const notAsked = (): Promise<never> => Promise.reject(new Error('nobody asked'))

const UPGRADE = {
  connection: 'Upgrade',
  upgrade: 'websocket',
  'sec-websocket-version': '13',
  'sec-websocket-key': Buffer.alloc(16).toString('base64'),
}

test('a client that breaks the protocol while the agent goes away keeps it from nothing', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'sandlot-socket-'))
  const path = join(folder, 'agent.sock')
  const log = { info: () => undefined, warn: () => undefined }
  const server = await listenOnSocket({
    streams: new ByteStreams(),
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
      headers: UPGRADE,
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

test('a client that is killed is no line of the log', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'sandlot-socket-'))
  const path = join(folder, 'agent.sock')
  const warnings: unknown[] = []
  const log = { info: () => undefined, warn: (fields: unknown) => void warnings.push(fields) }
  const gone = Promise.withResolvers<void>()
  const server = await listenOnSocket({
    streams: new ByteStreams(),
    path,
    serve: (stream) => {
      void stream.readable.pipeTo(new WritableStream()).finally(() => gone.resolve())
      const long = { jsonrpc: '2.0', method: 'long', params: { text: 'x'.repeat(4_000_000) } } as const
      stream.writable
        .getWriter()
        .write(long)
        .catch(() => undefined)
    },
    status: notAsked,
    listTools: notAsked,
    log,
  })
  try {
    const asking = connect(path)
    const head = Object.entries(UPGRADE).map(([name, value]) => `${name}: ${value}\r\n`)
    asking.write(`GET ${ACP_PATH} HTTP/1.1\r\nhost: agent\r\n${head.join('')}\r\n`)
    // Most of it is never read, as by a process that was killed.
    await once(asking, 'readable')
    asking.destroy()
    await gone.promise
    await server.close()
    expect(warnings).toEqual([])
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
})
