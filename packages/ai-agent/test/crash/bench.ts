/** A folder on which one agent after another lives and is killed, with a provider and, where a script needs it, a sandbox. */
import { existsSync, mkdtempSync, readFileSync, readdirSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { SessionEvent } from '@sandlot/shared/events'
import type { SandboxBackend } from '@sandlot/sandbox/backend'
import { createLocalProcessBackend } from '@sandlot/sandbox/backends/local-process'
import { type Sandboxes, createSandboxes } from '@sandlot/sandbox/sandboxes'
import type { SessionStore } from '@sandlot/storage/sessions/store'
import { openSessionStore } from '@sandlot/storage/sessions/sqlite'
import { builtinTools } from '../../src/tools/builtin/index.ts'
import { openCore } from '../agent-fixture.ts'
import { type FakeProvider, startFakeProvider } from '../fake-provider.ts'
import { Life, mortal } from './life.ts'
import { type CrashScript, answersOf, playClient } from './scripts.ts'
import { crashTools } from './tools.ts'

export const SESSION = 's_crash'
export const USER = 'u_ada'
const DEPLOYMENT = { deploymentId: 'crash', deploymentKey: new Uint8Array(32).fill(7), image: 'none' }
/** More than any script asks for in any number of lives. */
const MANY = 200

/** Everything a life needs that is outside of it, and outlives it. */
export interface World {
  folder: string
  baseUrl: string
  /** Absent: no sandbox. */
  backend?: SandboxBackend
}

export function filesOf(folder: string): { journal: string; until: string; volumes: string } {
  return {
    journal: join(folder, 'journal'),
    until: join(folder, 'until'),
    volumes: join(folder, 'volumes'),
  }
}

/** The one user's workspace, once there is one. */
export function workspaceOf(folder: string): string | undefined {
  const { volumes } = filesOf(folder)
  const [name] = existsSync(volumes) ? readdirSync(volumes) : []
  return name === undefined ? undefined : join(volumes, name)
}

/** Live until the end of the script, or of the life. What lives on in memory after that does nothing. */
export async function live(script: CrashScript, world: World, life: Life): Promise<'killed' | 'done'> {
  const files = filesOf(world.folder)
  const { backend } = world
  let sandboxes: Sandboxes | undefined
  const core = await openCore(world.folder, world, {
    tools: [...builtinTools(), ...crashTools(life, files)],
    wrap: (parts) => {
      if (backend === undefined) return mortal(parts, life)
      sandboxes = createSandboxes({ backend, ledger: parts.store.ledger, ...DEPLOYMENT })
      const { acquire } = sandboxes
      return mortal({ ...parts, sandbox: (userId, signal) => acquire(userId, signal) }, life)
    },
  })
  const work = async (): Promise<'done'> => {
    await core.manager.resumeUnfinished()
    const known = await core.store.getSession(SESSION)
    const session =
      known === undefined
        ? await core.manager.create({
            userId: USER,
            cwd: '/workspace',
            mode: script.mode,
            sessionId: SESSION,
          })
        : await core.manager.get(USER, SESSION)
    await playClient(script, session, { until: files.until, workspace: () => workspaceOf(world.folder) })
    return 'done'
  }
  const working = work()
  // What it throws after its death is of no interest; before, it is thrown by the race.
  void Promise.allSettled([working])
  const how = await Promise.race([life.ended.then(() => 'killed' as const), working])
  await sandboxes?.close()
  if (how === 'done') await core.leave()
  else await core.store.close()
  return how
}

/** Lives inside this process, which end by freezing. */
export class CrashBench implements AsyncDisposable {
  readonly folder = mkdtempSync(join(tmpdir(), 'sandlot-crash-'))
  readonly script: CrashScript
  readonly provider: FakeProvider
  readonly #backend: SandboxBackend | undefined

  static async start(script: CrashScript, sbxd: string | undefined): Promise<CrashBench> {
    const answer = answersOf(script)
    return new CrashBench(script, await startFakeProvider(Array.from({ length: MANY }, () => answer)), sbxd)
  }

  private constructor(script: CrashScript, provider: FakeProvider, sbxd: string | undefined) {
    this.script = script
    this.provider = provider
    if (script.sandbox === true && sbxd !== undefined) {
      this.#backend = createLocalProcessBackend({ sbxd, directory: filesOf(this.folder).volumes })
    }
  }

  get world(): World {
    const world = { folder: this.folder, baseUrl: this.provider.baseUrl }
    return this.#backend === undefined ? world : { ...world, backend: this.#backend }
  }

  /** One life, which ends at the n-th point; absent: with the script. */
  async live(endsAt?: number): Promise<{ how: 'killed' | 'done'; passed: readonly string[] }> {
    const life = new Life(endsAt)
    return { how: await live(this.script, this.world, life), passed: life.passed }
  }

  /** Look at what is stored. */
  async read<T>(look: (store: SessionStore, log: SessionEvent[]) => Promise<T>): Promise<T> {
    const store = await openSessionStore(join(this.folder, 'sessions.db'))
    try {
      return await look(store, await store.readEvents(SESSION))
    } finally {
      await store.close()
    }
  }

  /** Lines that tools and commands wrote when they had their effect. */
  journal(): string[] {
    const paths = [filesOf(this.folder).journal, join(workspaceOf(this.folder) ?? this.folder, 'journal')]
    return [...new Set(paths)].flatMap((path) =>
      existsSync(path) ? readFileSync(path, 'utf8').trim().split('\n') : [],
    )
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#backend?.close()
    await this.provider.close()
    rmSync(this.folder, { recursive: true, force: true })
  }
}
