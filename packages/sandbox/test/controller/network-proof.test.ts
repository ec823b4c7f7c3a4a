/** The proof where a sandbox may have a network: from real sbxd processes, which have this machine's. */
import { createSocket } from 'node:dgram'
import { once } from 'node:events'
import { createServer } from 'node:net'

import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test, vi } from 'vitest'

import type { ForbiddenAddress } from '../../src/backend.ts'
import { createProve, judgeProof, probeSandbox, type Prove } from '../../src/controller/proof.ts'
import { SandboxError } from '../../src/errors.ts'
import { collect } from '../../src/sbxd/collect.ts'
import type { ConnectedSandbox } from '../../src/sbxd/client.ts'
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

describe('a proof of a sandbox in which commands may run', () => {
  let ada: ConnectedSandbox
  let asked: number
  let unreachable: () => Promise<ForbiddenAddress[]>
  let prove: Prove
  beforeEach(async () => {
    const { sandboxes, hands } = fixture.start()
    ada = (await sandboxes.acquire('ada')) as ConnectedSandbox
    asked = 0
    const { inventory } = hands.backend
    prove = createProve({
      inventory: {
        ...inventory,
        capabilities: async () => ({ ...(await inventory.capabilities()), isolates: true }),
        unreachable: () => {
          asked += 1
          return unreachable()
        },
      },
    })
  }, 60_000)
  afterEach(() => void vi.restoreAllMocks())

  const isUnfinished = { code: 'engine_unavailable', message: expect.stringContaining('did not finish') }

  test('judges only the network: this machine, where no sandbox is isolated, passes', async () => {
    unreachable = async () => []
    await prove(ada, 'default', true)
    await expect(prove(ada, 'default')).resolves.toBeUndefined()
    expect(asked).toBe(1)
  }, 60_000)

  test('fails where something answers, each time', async () => {
    await using server = await listening()
    unreachable = async () => [at('a listener', server.port)]
    for (const _try of [1, 2])
      await expect(prove(ada, 'default', true)).rejects.toMatchObject({
        code: 'unsafe_host',
        message: expect.stringMatching(/Network: a sandbox gets an answer from a listener\./),
      })
    expect(asked).toBe(2)
  }, 60_000)

  test('is no proof of an unsafe host when a command kills it, nor is a first one', async () => {
    using silent = await udp(false)
    unreachable = async () => [at('a silent socket', silent.port, true)]
    for (const isAgain of [true, false]) {
      const kill = collect(ada, {
        command: ['/bin/bash', '-c', KILL_PERL],
        timeoutMs: 20_000,
      })
      await expect(prove(ada, 'default', isAgain)).rejects.toMatchObject(isUnfinished)
      expect(await kill).toMatchObject({ code: 0 })
      passTime(60_001)
    }
  }, 60_000)

  test('is due a minute later when it could not be made, and calls pass until then', async () => {
    const failure = new SandboxError('engine_unavailable', 'No name server answers.')
    unreachable = () => Promise.reject(failure)
    await expect(prove(ada, 'default', true)).rejects.toBe(failure)
    await prove(ada, 'default', true)
    expect(asked).toBe(1)
    passTime(60_001)
    await expect(prove(ada, 'default', true)).rejects.toBe(failure)
    expect(asked).toBe(2)
  }, 60_000)

  test('a first one that could not be made is refused, and made at the next call', async () => {
    const failure = new SandboxError('engine_unavailable', 'No name server answers.')
    unreachable = () => Promise.reject(failure)
    for (const _try of [1, 2]) await expect(prove(ada, 'default')).rejects.toBe(failure)
    expect(asked).toBe(2)
  }, 60_000)
})

/** In this sandbox alone: each command has a parent of its own below sbxd. */
const KILL_PERL =
  'until pkill -KILL -x perl -P "$(pgrep -d, -P $(ps -o ppid= -p $PPID))"; do sleep 0.01; done'

/** Timers keep their pace: only the clock of the proof jumps. */
function passTime(ms: number): void {
  const now = performance.now() + ms
  vi.spyOn(performance, 'now').mockImplementation(() => now)
}
