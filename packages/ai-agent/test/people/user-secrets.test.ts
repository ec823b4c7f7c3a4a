/** Secrets with real parts: the SQLite store, the real session, a scripted provider. */
import { readFileSync, readdirSync } from 'node:fs'
import { join } from 'node:path'
import type { SecretRows } from '@sandlot/storage/people/secrets'
import { describe, expect, test } from 'vitest'
import { z } from 'zod'
import { makeRedactor, makeLog } from '../../src/log.ts'
import { UserSecrets } from '../../src/people/user-secrets.ts'
import { createVault } from '../../src/people/vault.ts'
import { defineTool, type Tool } from '../../src/tools/tool.ts'
import { AgentBench, type Core, ask, newSession, outcomes } from '../support/agent-fixture.ts'
import { textAnswer, toolCalls } from '../support/fake-provider.ts'

const VALUE = 'a "secret" value\nof two lines'
const key = (n: number): Uint8Array => new Uint8Array(32).fill(n)
const over = (
  rows: SecretRows,
  keys: [Uint8Array, ...Uint8Array[]] = [key(1)],
  redact = (): void => undefined,
) => new UserSecrets({ rows, vault: createVault(keys), redact, now: () => 7 })

const all = async <T>(steps: AsyncGenerator<void, T>): Promise<T> => {
  let next = await steps.next()
  while (next.done !== true) next = await steps.next()
  return next.value
}

/** Uses a secret, and says more about it than it should. */
const careless: Tool = defineTool({
  name: 'careless',
  description: 'Uses a token.',
  kind: 'other',
  input: z.strictObject({ fail: z.boolean().optional().describe('Whether to fail.') }),
  readOnly: true,
  title: () => 'Careless',
  async *execute({ fail }, ctx) {
    const token = await ctx.secret('TOKEN')
    yield { type: 'progress', message: `signing in with ${token}` }
    if (fail === true) throw new Error(`refused ${token}`)
    return {
      status: 'completed',
      forModel: `sent ${token}`,
      data: { headers: [{ [token]: `Basic ${token}` }] },
    }
  },
})

const withSecrets = (bench: AgentBench): Promise<Core> =>
  bench.core({
    tools: [careless],
    wrap: (parts) => ({ ...parts, secrets: over(parts.store.people.secrets) }),
  })

const call = (args: Record<string, unknown> = {}) => ({ id: 'c1', name: 'careless', args })

describe('secrets of a user', () => {
  test('are kept for one person, listed by name, replaced and removed', async () => {
    await using bench = await AgentBench.start()
    const { store } = await bench.core()
    const secrets = over(store.people.secrets)
    await secrets.set('ann', 'TOKEN', VALUE)
    await secrets.set('ann', 'mcp:atlas:tokens', 'of the agent itself')
    expect(await secrets.get('ann', 'TOKEN')).toBe(VALUE)
    expect(await secrets.get('bob', 'TOKEN')).toBeUndefined()
    expect(await secrets.names('ann')).toEqual([{ name: 'TOKEN', updatedAt: 7 }])
    expect(await secrets.remove('ann', 'TOKEN')).toBe(true)
    expect(await secrets.get('ann', 'TOKEN')).toBeUndefined()
    await expect(secrets.set('ann', 'BIG', 'x'.repeat(20_000))).rejects.toMatchObject({ code: 'too_large' })
    await expect(secrets.set('ann', '', 'x')).rejects.toMatchObject({ code: 'bad_request' })
  })

  test('no file of the store shows one', async () => {
    await using bench = await AgentBench.start()
    const { store } = await bench.core()
    await over(store.people.secrets).set('ann', 'TOKEN', 'a-value-that-can-be-found')
    const files = readdirSync(bench.folder).filter((name) => name.startsWith('sessions.db'))
    expect(files.length).toBeGreaterThan(0)
    for (const name of files)
      expect(readFileSync(join(bench.folder, name)).includes('a-value-that-can-be-found')).toBe(false)
  })

  test('are sealed again when the key changes; what no key opens stays, and is named', async () => {
    await using bench = await AgentBench.start()
    const { store } = await bench.core()
    await over(store.people.secrets, [key(9)]).set('ann', 'LOST', 'x')
    for (let n = 0; n < 130; n++) await over(store.people.secrets).set('ann', `S${n}`, `value ${n}`)
    const moved = over(store.people.secrets, [key(2), key(1)])
    expect(await all(moved.reseal())).toEqual({ resealed: 130, lost: ['ann/LOST'] })
    expect(await over(store.people.secrets, [key(2)]).get('ann', 'S129')).toBe('value 129')
    expect(await all(moved.reseal())).toEqual({ resealed: 0, lost: ['ann/LOST'] })
    await expect(moved.get('ann', 'LOST')).rejects.toThrow(/another deployment key/)
  })

  test('the log hides each that was read or set, as it is and as JSON writes it', async () => {
    await using bench = await AgentBench.start()
    const { store } = await bench.core()
    const lines: string[] = []
    const redactor = makeRedactor(['configured-value'])
    const log = makeLog('info', redactor, (line) => void lines.push(line))
    const secrets = new UserSecrets({
      rows: store.people.secrets,
      vault: createVault([key(1)]),
      redact: redactor.redact,
      now: () => 7,
    })
    await secrets.set('ann', 'TOKEN', VALUE)
    log.info({ deep: [{ value: VALUE }] }, `said ${VALUE} and configured-value`)
    expect(lines.join('')).not.toMatch(/secret|two lines|configured-value/)
  })
})

describe('a call', () => {
  test('reads a secret, and nothing it says has it: not the model’s text, not the log, not the screen', async () => {
    await using bench = await AgentBench.start([toolCalls([call()]), textAnswer('ok')])
    const core = await withSecrets(bench)
    const session = await core.manager.createSession('u_ada', { TOKEN: 'tok-ordinary' }, { mode: 'yolo' })
    await ask(session, 'go')
    expect(outcomes(session.log)).toEqual({ c1: ['completed'] })
    expect(JSON.stringify(session.log)).not.toContain('tok-ordinary')
    expect(bench.provider.requests[1]?.raw).toContain('sent [hidden]')
    expect(bench.provider.requests.map(({ raw }) => raw).join('')).not.toContain('tok-ordinary')
  })

  test('an error that quotes it is cleaned too', async () => {
    await using bench = await AgentBench.start([toolCalls([call({ fail: true })]), textAnswer('ok')])
    const core = await withSecrets(bench)
    const session = await core.manager.createSession('u_ada', { TOKEN: 'tok-ordinary' }, { mode: 'yolo' })
    await ask(session, 'go')
    expect(outcomes(session.log)).toEqual({ c1: ['failed tool_error'] })
    expect(JSON.stringify(session.log)).not.toContain('tok-ordinary')
  })

  test('without the secret it ends needs_auth, and says what to set', async () => {
    await using bench = await AgentBench.start([toolCalls([call()]), textAnswer('ok')])
    const core = await withSecrets(bench)
    const session = await newSession(core)
    await ask(session, 'go')
    expect(outcomes(session.log)).toEqual({ c1: ['failed needs_auth'] })
    expect(bench.provider.requests[1]?.raw).toContain('needs the secret TOKEN')
  })
})

test('a session is created with what a user’s tools need; a wrong name creates nothing', async () => {
  await using bench = await AgentBench.start()
  const core = await withSecrets(bench)
  const session = await core.manager.createSession('u_ada', { TOKEN: 'tok-1' })
  expect(session).toMatchObject({ userId: 'u_ada', cwd: '/workspace', mode: 'auto-edit' })
  expect(await over(core.store.people.secrets).get('u_ada', 'TOKEN')).toBe('tok-1')
  await expect(core.manager.createSession('u_bob', { 'a b': 'x' })).rejects.toMatchObject({
    code: 'bad_request',
  })
  expect(await core.manager.list('u_bob')).toEqual([])
  expect((await core.manager.createSession('u_bob')).userId).toBe('u_bob')
})
