/** A folder on which one agent after another lives and is killed, with a provider and, where a script needs it, a sandbox. */
import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import type { SessionEvent } from '@sandlot/shared/chat/events'
import { createLocalProcessBackend } from '@sandlot/sandbox/backends/local-process'
import type { Sandbox } from '@sandlot/sandbox/sandbox'
import { type Sandboxes, createSandboxes } from '@sandlot/sandbox/sandboxes'
import type { SessionStore } from '@sandlot/storage/sessions/store'
import { openSessionStore } from '@sandlot/storage/store/open'
import type { Model } from '../../src/model/model.ts'
import { createHttpModel } from '../../src/model/http-model.ts'
import { builtinTools } from '../../src/tools/builtin/index.ts'
import type { Tool } from '../../src/tools/tool.ts'
import { openCore } from '../support/agent-fixture.ts'
import { type FakeProvider, startFakeProvider } from '../support/fake-provider.ts'
import { type McpBench, openMcpBench } from '../mcp/mcp-bench.ts'
import type { FailingDisk } from './failing-disk.ts'
import { Life, during, mortal } from './life.ts'
import { type CrashHttpServer, PIPE_SERVER, startCrashHttpServer } from './mcp-server.ts'
import { answersOf, playClient } from './play.ts'
import type { CrashScript } from './scripts.ts'
import { crashTools } from './tools.ts'

export const SESSION = 's_crash'
export const USER = 'u_ada'
/** More than any script asks for in any number of lives. */
const MANY = 200

/** Everything a life needs that is outside of it, and outlives it. */
export interface World {
  folder: string
  baseUrl: string
  /** A new controller over the same sandboxes; absent: none. */
  sandboxes?: (store: SessionStore) => Sandboxes
  /** The address of the MCP server for scripts over HTTP; absent: none. */
  mcpUrl?: string
  /** The store's disk, when it is about to fail. */
  disk?: FailingDisk
}

/** Sandboxes that outlive the lives inside this process. */
export interface CrashSandboxes {
  open: (store: SessionStore) => Sandboxes
  close: () => Promise<void>
}

export function localSandboxes(sbxd: string): CrashSandboxes {
  const directory = mkdtempSync(join(tmpdir(), 'sandlot-volumes-'))
  const backend = createLocalProcessBackend({ sbxd, directory })
  const deployment = { deploymentId: 'crash', deploymentKey: new Uint8Array(32).fill(7), image: 'none' }
  return {
    open: ({ ledger }) => createSandboxes({ backend, ledger, ...deployment }),
    async close() {
      await backend.inventory.close()
      rmSync(directory, { recursive: true, force: true })
    },
  }
}

export function filesOf(folder: string): { journal: string; until: string } {
  return { journal: join(folder, 'journal'), until: join(folder, 'until') }
}

/** Live until the end of the script, or of the life. What lives on in memory after that does nothing. */
export async function live(script: CrashScript, world: World, life: Life): Promise<'killed' | 'done'> {
  const files = filesOf(world.folder)
  let sandboxes: Sandboxes | undefined
  const tools = [...builtinTools(), ...crashTools(life, files)]
  const mcp = openServers(script, world, tools)
  const core = await openCore(world.folder, world, {
    tools,
    wrap: (given) => {
      const parts = {
        ...given,
        store: world.disk?.under(given.store) ?? given.store,
        ...(script.fallback === true ? { models: { ...given.models, fallbacks: [otherModel(world)] } } : {}),
        ...(mcp === undefined ? {} : { tools: mcp.mcp.toolsOf }),
      }
      sandboxes = world.sandboxes?.(parts.store)
      if (sandboxes === undefined) return mortal(parts, life)
      const { acquire } = sandboxes
      const sandbox = async (userId: string, signal: AbortSignal): Promise<Sandbox> => {
        if (script.wakesIn !== undefined) await sleep(script.wakesIn)
        return saysLate(await acquire(userId, signal), script.saysIn, life)
      }
      return mortal({ ...parts, sandbox }, life)
    },
  })
  const work = async (): Promise<'done'> => {
    await core.manager.resumeUnfinished()
    const known = await core.store.sessions.get(SESSION)
    const session =
      known === undefined
        ? await core.manager.create({
            userId: USER,
            cwd: '/workspace',
            mode: script.mode,
            sessionId: SESSION,
          })
        : await core.manager.get(USER, SESSION)
    await playClient(script, session, files.until)
    return 'done'
  }
  const working = world.disk?.through(work) ?? work()
  // Errors after its death do not matter; before, the race throws them.
  void Promise.allSettled([working])
  const how = await Promise.race([life.ended.then(() => 'killed' as const), working])
  await sandboxes?.close()
  if (how === 'done') await core.leave()
  else await core.store.close()
  await mcp?.close()
  return how
}

/** The MCP servers of one life: what they wrote outlives it, a connection does not. */
function openServers(script: CrashScript, world: World, builtin: readonly Tool[]): McpBench | undefined {
  if (script.mcp === undefined) return undefined
  const server =
    script.mcp === 'pipe'
      ? { command: 'node', args: [PIPE_SERVER, filesOf(world.folder).journal] }
      : { url: world.mcpUrl }
  return openMcpBench({ crash: { ...server, readOnly: 'as-announced' } }, { builtin })
}

function otherModel({ baseUrl }: World): Model {
  return createHttpModel({ baseUrl, apiKey: 'sk-test', model: 'other' })
}

function saysLate(sandbox: Sandbox, ms: number | undefined, life: Life): Sandbox {
  if (ms === undefined) return sandbox
  const run: Sandbox['run'] = async (request) => {
    const command = await sandbox.run(request)
    await sleep(ms)
    return command
  }
  return during(sandbox, { run }, life)
}

/** Lives inside this process, which end by freezing. */
export class CrashBench implements AsyncDisposable {
  readonly folder = mkdtempSync(join(tmpdir(), 'sandlot-crash-'))
  readonly script: CrashScript
  readonly provider: FakeProvider
  readonly #sandboxes: CrashSandboxes | undefined
  #mcp: CrashHttpServer | undefined

  /** `sandboxes`: closed at the end; only for scripts that use one. */
  static async start(script: CrashScript, sandboxes: () => CrashSandboxes): Promise<CrashBench> {
    const answer = answersOf(script)
    const provider = await startFakeProvider(Array.from({ length: MANY }, () => answer))
    const bench = new CrashBench(script, provider, script.sandbox === true ? sandboxes() : undefined)
    if (script.mcp === 'http') bench.#mcp = await startCrashHttpServer(filesOf(bench.folder).journal)
    return bench
  }

  private constructor(script: CrashScript, provider: FakeProvider, sandboxes: CrashSandboxes | undefined) {
    this.script = script
    this.provider = provider
    this.#sandboxes = sandboxes
  }

  get world(): World {
    return {
      folder: this.folder,
      baseUrl: this.provider.baseUrl,
      ...(this.#sandboxes === undefined ? {} : { sandboxes: this.#sandboxes.open }),
      ...(this.#mcp === undefined ? {} : { mcpUrl: this.#mcp.url }),
    }
  }

  /** One life, which ends at the n-th point; absent: with the script. */
  async live(endsAt?: number): Promise<{ how: 'killed' | 'done'; passed: readonly string[] }> {
    const life = new Life(endsAt)
    return { how: await live(this.script, this.world, life), passed: life.passed }
  }

  /** One life to the script's end, whatever the disk does. */
  async liveOn(disk: FailingDisk): Promise<void> {
    await live(this.script, { ...this.world, disk }, new Life())
  }

  /** Look at what is stored, and at the sandbox, if the script uses one. */
  async read<T>(
    look: (store: SessionStore, log: SessionEvent[], sandbox: Sandbox | undefined) => Promise<T>,
  ): Promise<T> {
    const store = await openSessionStore(join(this.folder, 'sessions.db'))
    const sandboxes = this.#sandboxes?.open(store)
    try {
      const sandbox = await sandboxes?.acquire(USER)
      return await look(store, await store.log.read(SESSION), sandbox)
    } finally {
      await sandboxes?.close()
      await store.close()
    }
  }

  /** Lines that tools and commands wrote when they had their effect. */
  async journal(sandbox: Sandbox | undefined): Promise<string[]> {
    const { journal } = filesOf(this.folder)
    const texts = existsSync(journal) ? [readFileSync(journal, 'utf8')] : []
    const inside = await sandbox?.files.stat('journal').catch(() => undefined)
    if (inside !== undefined) texts.push(new TextDecoder().decode(await sandbox?.files.read('journal')))
    return texts.flatMap((text) => text.trim().split('\n'))
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#sandboxes?.close()
    await this.#mcp?.[Symbol.asyncDispose]()
    await this.provider.close()
    rmSync(this.folder, { recursive: true, force: true })
  }
}
