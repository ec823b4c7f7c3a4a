/** The cost of an idle connection, such as a page with an open chat. */
import { setTimeout as sleep } from 'node:timers/promises'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import type { AnyMessage } from '@agentclientprotocol/sdk'
import { expect, test } from 'vitest'
import { createAcpServer } from '../../src/acp/server.ts'
import { AgentBench } from '../support/agent-fixture.ts'
import { acpParts } from './test-client.ts'

setFlagsFromString('--expose-gc')
const collectGarbage = runInNewContext('gc') as () => void

const FIRST = 50
const MORE = 200

test('a connection that has said initialize keeps less than 28 KiB', async () => {
  await using bench = await AgentBench.start()
  const serve = createAcpServer(acpParts(await bench.core()))
  const connections: { end: () => void }[] = []
  const open = async (count: number): Promise<number> => {
    for (let n = 0; n < count; n++) {
      const messages = Promise.withResolvers<ReadableStreamDefaultController<AnyMessage>>()
      const answered = Promise.withResolvers<AnyMessage>()
      const connection = serve({
        readable: new ReadableStream({ start: messages.resolve }),
        writable: new WritableStream({ write: answered.resolve }),
      })
      const params = { protocolVersion: 1, clientCapabilities: {} }
      const controller = await messages.promise
      controller.enqueue({ jsonrpc: '2.0', id: 0, method: 'initialize', params })
      expect(await answered.promise).toHaveProperty('result')
      connections.push({ end: () => connection.close() })
    }
    // The last of their pending work is done.
    await sleep(0)
    collectGarbage()
    return process.memoryUsage().heapUsed
  }
  const before = await open(FIRST)
  const each = ((await open(MORE)) - before) / MORE
  for (const { end } of connections) end()
  expect(each).toBeLessThan(28 * 1024)
})
