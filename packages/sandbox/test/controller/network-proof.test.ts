/** The proof where a sandbox may have a network: from real sbxd processes, which have this machine's. */
import { createSocket } from 'node:dgram'
import { once } from 'node:events'
import { createServer } from 'node:net'

import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from 'vitest'

import type { ForbiddenAddress } from '../../src/backend.ts'
import { createProve, judgeProof, probeSandbox } from '../../src/controller/proof.ts'
import { compiledSbxd, type FakeFixture, fakeFixture, removeSbxd } from '../support/fake-fixture.ts'

let fixture: FakeFixture

beforeAll(async () => {
  await compiledSbxd()
}, 120_000)
afterAll(removeSbxd)
beforeEach(async () => {
  fixture = await fakeFixture()
}, 120_000)
afterEach(() => fixture.dispose(), 120_000)

async function listening(): Promise<{ port: number; [Symbol.asyncDispose](): Promise<void> }> {
  const server = createServer().listen(0, '127.0.0.1')
  await once(server, 'listening')
  const address = server.address()
  if (address === null || typeof address === 'string') throw new Error('no port')
  return {
    port: address.port,
    async [Symbol.asyncDispose]() {
      server.close()
      await once(server, 'close')
    },
  }
}

async function udp(answers: boolean): Promise<{ port: number; [Symbol.dispose](): void }> {
  const socket = createSocket('udp4')
  if (answers) socket.on('message', (query, from) => socket.send(query, from.port, from.address))
  socket.bind(0, '127.0.0.1')
  await once(socket, 'listening')
  return { port: socket.address().port, [Symbol.dispose]: () => void socket.close() }
}

const at = (name: string, port: number, udp = false): ForbiddenAddress => ({
  name,
  host: '127.0.0.1',
  port,
  udp,
})

test('names what answers: a listener, a refusal, a datagram; not what is silent', async () => {
  const sandbox = await fixture.start().sandboxes.acquire('ada')
  const gone = await listening()
  await gone[Symbol.asyncDispose]()
  await using server = await listening()
  using loud = await udp(true)
  using silent = await udp(false)
  const proof = await probeSandbox(sandbox, [
    at('a listener', server.port),
    at('nobody', gone.port),
    at('a resolver', loud.port, true),
    at('a silent socket', silent.port, true),
  ])
  expect(proof.get('answered')?.split(',').toSorted()).toEqual(['a listener', 'a resolver', 'nobody'])
  expect(judgeProof(proof).find(({ id }) => id === 'network')).toMatchObject({
    state: 'failed',
    message: expect.stringContaining('a listener'),
  })
  expect(judgeProof(await probeSandbox(sandbox, [at('a silent socket', silent.port, true)]))).toContainEqual(
    expect.objectContaining({ id: 'network', state: 'ok' }),
  )
}, 60_000)

test('each boot is proved once in ten minutes where there is a network, and one proof is enough elsewhere', async () => {
  const { sandboxes, hands } = fixture.start()
  const [ada, bob] = [await sandboxes.acquire('ada'), await sandboxes.acquire('bob')]
  const { inventory } = hands.backend
  const asked: string[] = []
  const inventoryOf = (isIsolated: boolean): typeof inventory => ({
    ...inventory,
    capabilities: async () => ({ ...(await inventory.capabilities()), isolates: isIsolated }),
    unreachable: async (id) => {
      asked.push(id)
      return []
    },
  })
  const prove = createProve({ inventory: inventoryOf(true) })
  // This machine is no sandbox: the proof fails, and a failure is not remembered.
  for (const sandbox of [ada, ada, bob]) await expect(prove(sandbox, 'default')).rejects.toThrow(/Sandboxes/)
  expect(asked).toHaveLength(3)
  const nothing = createProve({ inventory: inventoryOf(false) })
  await nothing(ada, 'default')
  expect(nothing(ada, 'default')).toBe(nothing(ada, 'default'))
  expect(nothing(bob, 'default')).not.toBe(nothing(ada, 'default'))
  const forAll = createProve({ inventory })
  expect(forAll(bob, 'default')).toBe(forAll(ada, 'default'))
}, 60_000)
