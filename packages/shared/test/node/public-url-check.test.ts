import { once } from 'node:events'
import { createServer, type RequestListener } from 'node:http'
import type { AddressInfo } from 'node:net'
import { expect, test } from 'vitest'
import { publicUrlCheck } from '../../src/node/checks/public-url.ts'

/** The check against a server that answers so, with and without an upgrade. */
async function against(answer: RequestListener, upgrades = false): Promise<unknown> {
  const server = createServer(answer)
  if (upgrades)
    server.on('upgrade', (_, socket) =>
      socket.end('HTTP/1.1 401 Unauthorized\r\nconnection: close\r\ncontent-length: 2\r\n\r\n{}'),
    )
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  try {
    return (await publicUrlCheck(`http://127.0.0.1:${(server.address() as AddressInfo).port}/`))[0]
  } finally {
    server.close()
  }
}

test('an address that leads here with WebSockets is well', async () => {
  expect(await against(() => undefined, true)).toMatchObject({
    state: 'ok',
    message: expect.stringContaining('leads here, WebSockets too'),
  })
})

test('a proxy that drops the upgrade is told from one that leads elsewhere', async () => {
  const dropped = await against((_, response) => {
    response.writeHead(400).end('{"error":{"message":"This address takes WebSockets only."}}')
  })
  expect(dropped).toMatchObject({
    state: 'failed',
    message: expect.stringContaining('does not pass WebSockets'),
  })
  const elsewhere = await against((_, response) => response.writeHead(502).end())
  expect(elsewhere).toMatchObject({ state: 'failed', message: expect.stringContaining('answers 502') })
})

test('nothing is asked where no address is set, and one that cannot be reached says so', async () => {
  expect(await publicUrlCheck(undefined)).toEqual([])
  expect(await publicUrlCheck('http://127.0.0.1:9')).toMatchObject([
    { state: 'failed', group: 'warn', message: expect.stringContaining('cannot be reached') },
  ])
})
