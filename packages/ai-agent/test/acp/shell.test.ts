/** Users' own access to the sandbox: terminals, commands, and the sandbox as a whole. */
import { EXT } from '@sandlot/shared/acp/meta'
import { agentSandboxes, sandboxUses } from '@sandlot/shared/admin/sandboxes'
import { DEFAULT_LIMITS } from '@sandlot/sandbox/limits'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { ByteStreams } from '../../src/acp/byte-streams.ts'
import { Starting } from '../../src/acp/starting.ts'
import type { ShellParts } from '../../src/acp/parts.ts'
import { mayUse } from '../../src/config/tool-offer.ts'
import { Execs } from '../../src/workspace/exec.ts'
import { Terminals } from '../../src/workspace/terminals.ts'
import { PersonJobs } from '../../src/tools/background/person-jobs.ts'
import { AgentBench } from '../support/agent-fixture.ts'
import { ADA, connect } from './test-client.ts'
import { useSandboxes } from '../tools/use-sandboxes.ts'

const local = useSandboxes()
let bench: AgentBench
beforeAll(async () => {
  bench = await AgentBench.start()
}, 60_000)
afterAll(() => bench[Symbol.asyncDispose]())

const log = { info: () => undefined, warn: () => undefined }

async function client(change: { off?: string; ours?: boolean; ceiling?: 'manual' } = {}) {
  const core = await bench.core()
  const { off, ours = true, ceiling } = change
  const { sandboxes } = local
  const connected = (userId: string) => sandboxes.connected(userId)
  const leaving = new AbortController().signal
  const single = new Map(off === undefined ? [] : [[off, false] as const])
  const personal = { of: () => ({ tools: { single }, limits: {} as never, instructions: [] }) }
  const shell: ShellParts = {
    terminals: new Terminals({
      audit: () => undefined,
      acquire: (userId) => sandboxes.acquire(userId),
      connected,
      status: (userId) => sandboxes.status(userId),
      leaving,
      log,
      now: Date.now,
    }),
    execs: new Execs({
      audit: () => undefined,
      runCalls: () => {
        throw new Error('nothing is run here')
      },
      sandbox: (userId) => sandboxes.acquire(userId),
      rules: undefined as never,
      externalAccess: () => undefined,
      leaving,
      log,
      now: Date.now,
    }),
    streams: new ByteStreams(),
    connected,
    mayUse: (userId, what) => mayUse(userId, what, { toolsEnabled: true, personal }),
    sandboxAdmin: {
      sandboxes: {
        ...sandboxes,
        workspaces: () => local.workspaces(),
        imageName: () => Promise.resolve('sandlot/sandbox-full:latest'),
      },
      starting: new Starting(),
      jobs: new PersonJobs({ store: core.store, connected, now: Date.now }),
      limits: DEFAULT_LIMITS,
    },
  }
  return connect(core, {
    parts: {
      shell,
      settings: { effective: () => NO_NETWORK } as never,
      ...(ceiling === undefined ? {} : { modeCeilingOf: () => ceiling }),
    },
    ...(ours ? {} : { capabilities: {} }),
  })
}

const NO_NETWORK = { network: { mode: { value: 'none' }, hosts: { value: [] }, ask: { value: false } } }
const EXEC = { command: 'true', timeoutMs: 1_000, merge: false }
const SIZE = { columns: 80, rows: 24 }

/** A request of each kind. */
const REQUESTS = [
  [EXT.terminals, { ask: { do: 'list' } }],
  [EXT.terminals, { ask: { do: 'open', ...SIZE } }],
  [EXT.exec, EXEC],
  [EXT.sandbox, { ask: { do: 'view' } }],
  [EXT.sandbox, { ask: { do: 'reset' } }],
] as const

const codeOf = async (asking: Promise<unknown>): Promise<unknown> =>
  asking.then(
    () => 'done',
    (error: unknown) => (error as { data?: { code?: string } }).data?.code,
  )

describe('a sandbox', () => {
  test('is none of a guest’s, and nothing of it is for foreign clients', async () => {
    await using guests = await client()
    await using foreign = await client({ ours: false })
    for (const [method, params] of REQUESTS) {
      const guest = { id: 'u_guest', role: 'guest' }
      expect(await codeOf(guests.request(method, { user: guest, ...params }))).toBe('forbidden')
      expect(await codeOf(foreign.request(method, { user: ADA, ...params }))).toBe('not_implemented')
    }
  })

  test('is seen as it is, and reset and stopped by its person', async () => {
    await using one = await client()
    const ask = (what: object) => one.request(EXT.sandbox, { user: ADA, ask: what })
    expect(await ask({ do: 'view' })).toMatchObject({
      state: 'none',
      image: 'sandlot/sandbox-full:latest',
      cpus: 2,
      network: { mode: 'none', hosts: [], ask: false },
      allowed: { terminal: true, exec: true },
    })
    const opened = await one.request(EXT.terminals, { user: ADA, ask: { do: 'open', ...SIZE } })
    expect(await ask({ do: 'view' })).toMatchObject({
      state: 'ready',
      steps: ['line', 'slot', 'container', 'hello', 'proof'].map((step) => expect.objectContaining({ step })),
      use: { commands: 1, memory: { used: expect.any(Number) } },
    })
    await ask({ do: 'reset' })
    const attach = { do: 'attach', id: opened['id'], from: 0 }
    expect(await codeOf(one.request(EXT.terminals, { user: ADA, ask: attach }))).toBe('not_found')
    await ask({ do: 'stop' })
    expect(await ask({ do: 'view' })).toMatchObject({ state: expect.stringMatching(/stopped|none/) })
    expect(await ask({ do: 'jobs' })).toEqual({ jobs: [] })
    expect(await codeOf(ask({ do: 'end', id: 'a'.repeat(32) }))).toBe('not_found')
  })

  test('its terminals and commands can be switched off one by one', async () => {
    await using noTerminal = await client({ off: 'terminal' })
    await using noExec = await client({ off: 'exec' })
    const open = { user: ADA, ask: { do: 'open', ...SIZE } }
    const attach = { user: ADA, ask: { do: 'attach', id: 'a'.repeat(32), from: 0 } }
    expect(await codeOf(noTerminal.request(EXT.terminals, open))).toBe('forbidden')
    expect(await codeOf(noTerminal.request(EXT.terminals, attach))).toBe('forbidden')
    expect(await noTerminal.request(EXT.exec, { user: ADA, ...EXEC })).toEqual({ ticket: expect.any(String) })
    expect(await codeOf(noExec.request(EXT.exec, { user: ADA, ...EXEC }))).toBe('forbidden')
    expect(await codeOf(noExec.request(EXT.terminals, attach))).toBe('not_found')
  })

  test('a mode above the ceiling is refused, and a default is lowered to it', async () => {
    await using one = await client({ ceiling: 'manual' })
    expect(await codeOf(one.request(EXT.exec, { user: ADA, ...EXEC, mode: 'yolo' }))).toBe('forbidden')
    const lowered = one.request(EXT.exec, { user: ADA, ...EXEC, defaultMode: 'yolo' })
    expect(await lowered).toEqual({ ticket: expect.any(String) })
  })
})

describe('everybody’s sandboxes', () => {
  const ROOT = { id: 'u_root', role: 'admin' }

  test('are seen, measured while awake, stopped and reset by administrators', async () => {
    await using one = await client()
    const ask = (what: object) => one.request(EXT.sandboxes, { user: ROOT, ask: what })
    const bob = { id: 'u_bob_of_many', role: 'member' }
    await one.request(EXT.terminals, { user: bob, ask: { do: 'open', ...SIZE } })
    const rowOf = async () =>
      agentSandboxes.parse(await ask({ do: 'list' })).sandboxes.find(({ userId }) => userId === bob.id)
    expect(await rowOf()).toMatchObject({ state: 'ready', since: expect.any(Number) })
    expect(agentSandboxes.parse(await ask({ do: 'list' }))).toMatchObject({
      image: 'sandlot/sandbox-full:latest',
      limits: { cpus: 2, processes: 512 },
      ownerless: [],
    })
    const use = async () => sandboxUses.parse(await ask({ do: 'use', userIds: [bob.id, 'u_nobody'] })).uses
    expect(await use()).toMatchObject({ [bob.id]: { commands: 1 } })

    expect(await ask({ do: 'reset', userId: bob.id })).toEqual({})
    expect(await use()).toMatchObject({ [bob.id]: { commands: 0 } })
    expect(await ask({ do: 'stop', userId: bob.id })).toEqual({})
    expect(await rowOf()).toMatchObject({ state: 'stopped' })
    expect(await use()).toEqual({})
    const refused = one.request(EXT.sandboxes, { user: bob, ask: { do: 'stop', userId: ADA.id } })
    expect(await codeOf(refused)).toBe('forbidden')
  })

  test('whose files are missing does nothing for its person, until an administrator resets it, which is written down', async () => {
    await using one = await client()
    const eve = { id: 'u_eve', role: 'member' }
    const open = () => one.request(EXT.terminals, { user: eve, ask: { do: 'open', ...SIZE } })
    await open()
    const volume = await local.loseWorkspace(eve.id)
    const uses = [open, () => one.request(EXT.sandbox, { user: eve, ask: { do: 'reset' } })]
    for (const use of uses) {
      expect(await codeOf(use())).toBe('conflict')
      await expect(use()).rejects.toThrow(`The volume ${volume} `)
    }
    const reset = { do: 'reset', userId: eve.id }
    expect(await one.request(EXT.sandboxes, { user: ROOT, ask: reset })).toEqual({})
    await open()
    expect(await one.request(EXT.sandboxes, { user: ROOT, ask: reset })).toEqual({})
    const { audit } = (await bench.core()).store.admin
    const lines = (await audit.page({ limit: 50 })).filter(({ whom }) => whom.id === eve.id)
    expect(lines.map(({ what, who, before, after }) => ({ what, by: who.id, before, after }))).toEqual([
      { what: 'sandbox_reset', by: 'u_root', before: null, after: null },
      { what: 'sandbox_reset', by: 'u_root', before: { missingVolume: volume }, after: { workspace: 'new' } },
    ])
  })
})
