/** Paths that pages show of a workspace are reported as changed, whoever changed them. */
import { EXT } from '@sandlot/shared/acp/meta'
import { expect, onTestFinished, test } from 'vitest'
import { FileWatches } from '../../src/acp/file-watches.ts'
import { AgentBench } from '../support/agent-fixture.ts'
import { openLocalSandboxes } from '../tools/local-sandboxes.ts'
import { ADA, BOB, connect } from './test-client.ts'

const PATIENCE = { timeout: 5_000 }

async function open() {
  const bench = await AgentBench.start()
  const local = await openLocalSandboxes()
  const core = await bench.core()
  const log = { info: () => undefined, warn: () => undefined }
  const watches = new FileWatches({ connected: (userId) => local.sandboxes.connected(userId), log })
  const acquire = async (userId: string) => {
    const sandbox = await local.sandboxes.acquire(userId)
    watches.awake(userId, sandbox)
    return sandbox
  }
  const page = async () => {
    const one = await connect(core, { parts: { watches } })
    const told = () =>
      one.others.flatMap(({ method, params }) =>
        method === EXT.filesChanged ? (params as { paths: string[] }).paths : [],
      )
    const watch = (paths: string[], user: object = ADA) => one.request(EXT.watch, { user, paths })
    return { one, told, watch, close: () => one[Symbol.asyncDispose]() }
  }
  onTestFinished(async () => {
    await bench[Symbol.asyncDispose]()
    await local.dispose()
  })
  return { acquire, page, restart: () => local.restartSandbox(ADA.id), sandboxes: local.sandboxes }
}

test('each page is told of its own folders, and a sandbox that sleeps is left asleep', async () => {
  const { acquire, page, restart, sandboxes } = await open()
  const [first, second, other] = [await page(), await page(), await page()]
  await first.watch(['', 'a'])
  expect((await sandboxes.status(ADA.id)).state).toBe('absent')
  const { files } = await acquire(ADA.id)
  await expect.poll(first.told, PATIENCE).toEqual(['', 'a'])
  await files.mkdir('a')
  await files.mkdir('b')
  await expect.poll(() => first.told().slice(2), PATIENCE).toContain('')

  // Another page: what the first one shows is not looked at again for it.
  await second.watch(['a', 'b'])
  await other.watch([''], BOB)
  await expect.poll(second.told, PATIENCE).toContain('b')
  const before = first.told().length
  await files.write('b/x', Buffer.from('x'))
  await expect.poll(() => second.told().filter((path) => path === 'b').length, PATIENCE).toBe(2)
  expect(first.told().slice(before)).not.toContain('b')

  await second.watch([])
  const silent = second.told().length
  await files.write('a/y', Buffer.from('y'))
  await expect.poll(() => first.told().at(-1), PATIENCE).toBe('a')
  expect(second.told().length).toBe(silent)

  // After a restart of the sandbox all of it may be another.
  await restart()
  const told = first.told().length
  const again = await acquire(ADA.id)
  await expect.poll(() => first.told().slice(told), PATIENCE).toEqual(['', 'a'])
  await again.files.write('a/z', Buffer.from('z'))
  await expect.poll(() => first.told().slice(told + 2), PATIENCE).toContain('a')
  expect(other.told()).toEqual([])
  for (const { close } of [first, second, other]) await close()
})

test('guests watch nothing, nor does a page name more folders than there may be', async () => {
  const { page } = await open()
  const one = await page()
  await expect(one.watch([''], { id: 'u_guest', role: 'guest' })).rejects.toMatchObject({
    data: { code: 'forbidden' },
  })
  await expect(one.watch(Array.from({ length: 129 }, (_, n) => `${n}`))).rejects.toMatchObject({
    data: { code: 'bad_request' },
  })
  await one.close()
})
