import { describe, expect, test } from 'vitest'
import { useSandboxes } from '../tools/use-sandboxes.ts'
import { SCRIPT, batchOf, openMcpBench, until } from './mcp-bench.ts'

const local = useSandboxes()

const inSandbox = (more: object = {}): object => ({
  command: process.execPath,
  args: [SCRIPT],
  where: 'sandbox',
  env: { WORD: 'declared' },
  ...more,
})
const sandbox = (userId: string, signal: AbortSignal) => local.sandboxes.acquire(userId, signal)
const commandsOf = async (userId: string): Promise<number> => {
  const known = await (await local.sandboxes.acquire(userId)).commands()
  return known.filter(({ state }) => state === 'running').length
}

describe('a server in the users’ sandboxes', () => {
  test('runs in each user’s own, once, with its declared environment', async () => {
    await using bench = openMcpBench({ s: inSandbox() }, { sandbox })
    const tools = await bench.tools('u_ada')
    const batch = batchOf(tools)
    const { forModel } = await batch.call('environment', {})
    const { env, cwd } = JSON.parse(forModel) as { env: Record<string, string>; cwd: string }
    expect(env).toMatchObject({ WORD: 'declared' })
    expect(cwd).toBe((await local.sandboxes.acquire('u_ada')).workspace)
    expect(await commandsOf('u_ada')).toBe(1)
    await bench.tools('u_bob')
    expect([await commandsOf('u_ada'), await commandsOf('u_bob')]).toEqual([1, 1])
    await bench.close()
    await until(async () => (await commandsOf('u_ada')) + (await commandsOf('u_bob')) === 0)
  })

  test('is stopped when idle, and started by the next call', async () => {
    await using bench = openMcpBench({ s: inSandbox({ idleMs: 1_000 }) }, { sandbox })
    const tools = await bench.tools('u_cleo')
    await until(async () => (await commandsOf('u_cleo')) === 0)
    expect(await bench.tools('u_cleo')).toBe(tools)
    expect(await commandsOf('u_cleo')).toBe(0)
    expect(await batchOf(tools).call('say', { text: 'awake' })).toMatchObject({ forModel: 'awake' })
  })

  test('a leftover of an earlier agent is killed before the start; a lost sandbox is one outcome', async () => {
    const lost = openMcpBench({ s: inSandbox() }, { sandbox })
    await lost.tools('u_dora')
    await using bench = openMcpBench({ s: inSandbox() }, { sandbox })
    const batch = batchOf(await bench.tools('u_dora'))
    expect(await commandsOf('u_dora')).toBe(1)
    await lost.close()
    expect(await batch.call('say', { text: 'mine' })).toMatchObject({ forModel: 'mine' })
    const [outcome] = await batch.run([{ id: 'n', name: 'progress', args: { steps: 1_000 } }], (event) => {
      if (JSON.stringify(event).includes('"step ')) void local.sandboxes.stop('u_dora')
    })
    expect(outcome).toMatchObject({ status: 'failed', reason: 'interrupted' })
  })
})
