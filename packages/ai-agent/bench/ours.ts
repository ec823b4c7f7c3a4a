/**
 * Sandlot itself: the session, the loop, the scheduler with all policies and the SQLite store, as a deployment has them, and
 * sandboxes where a goal is about commands.
 */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { WireName } from '@sandlot/shared/account/models-api'
import { type SessionEvent, metaOf, sandlotEventOf } from '@sandlot/shared/chat/events'
import { newId } from '@sandlot/shared/base/ids'
import { createHttpModel } from '../src/model/http-model.ts'
import { builtinTools } from '../src/tools/builtin/index.ts'
import { createRegistry } from '../src/tools/registry.ts'
import type { Session } from '../src/session/session.ts'
import { defineTool } from '../src/tools/tool.ts'
import { z } from 'zod'
import { type CoreOptions, openCore } from '../test/support/agent-fixture.ts'
import type { Contender, Stoppable } from './contender.ts'
import { type BenchSandboxes, openSandboxes } from './sandboxes.ts'

type Core = Awaited<ReturnType<typeof openCore>>
/** `echo`: one that reads. `none`: the requests have none. `builtin`: our own, with a sandbox. */
type Tools = 'echo' | 'none' | 'builtin'

export interface Ours extends Contender, AsyncDisposable {
  /** A new session whose model plays this recording. */
  newSession(model: string, tools: Tools, mode?: 'manual' | 'yolo'): Promise<Session>
  /** Begin a prompt whose call of the shell waits for approval. Resolves when its user has been asked. */
  askForLeave(model: string): Promise<Stoppable>
  /** A session with this log, as it is after a start. */
  sessionOf(model: string, log: readonly SessionEvent[]): Promise<Session>
  /** A prompt in it, to its end. Rejects unless the model has answered. */
  prompt(session: Session): Promise<void>
  /** Sets the tool's behaviour from now on. */
  saying(say: (text: string) => string): void
}

const NAMES: Record<WireName, string> = {
  chat: 'Sandlot',
  responses: 'Sandlot over Responses',
  anthropic: 'Sandlot over Messages',
}

export async function openOurs(baseUrl: string, wire: WireName = 'chat'): Promise<Ours> {
  const whose = `sandlot-${wire}`
  const folder = mkdtempSync(join(tmpdir(), 'sandlot-bench-'))
  let say = (text: string): string => text
  const echo = defineTool({
    name: 'echo',
    description: 'Says it again.',
    kind: 'other',
    input: z.strictObject({ text: z.string().describe('What to say.') }),
    readOnly: true,
    title: () => 'Echo',
    // oxlint-disable-next-line require-yield
    async *execute({ text }) {
      return { status: 'completed', forModel: say(text) }
    },
  })
  const cores = new Map<string, Promise<Core>>()
  const noTools = createRegistry()

  const opened: BenchSandboxes[] = []

  /** The model belongs to a core, so each recording has one; all share nothing but the process. */
  function coreOf(model: string, tools: Tools): Promise<Core> {
    const key = `${model}-${tools}`
    const core = cores.get(key) ?? makeCore(model, tools)
    cores.set(key, core)
    return core
  }

  async function makeCore(model: string, tools: Tools): Promise<Core> {
    const home = mkdtempSync(join(folder, 'core-'))
    let core: Core | undefined
    const sandboxes = once(async () => {
      if (core === undefined) throw new Error('the core is not there yet')
      const made = await openSandboxes(home, core.store)
      opened.push(made)
      return made.sandboxes
    })
    const ofTools: Record<Tools, CoreOptions> = {
      echo: { tools: [echo] },
      none: { parts: { tools: () => Promise.resolve(noTools) } },
      builtin: {
        tools: builtinTools(),
        parts: { sandbox: async (userId, signal) => (await sandboxes()).acquire(userId, signal) },
      },
    }
    const { parts, ...options } = ofTools[tools]
    core = await openCore(
      home,
      { baseUrl },
      { ...options, parts: { model: createHttpModel({ baseUrl, wire, apiKey: whose, model }), ...parts } },
    )
    return core
  }

  /** Prompt; resolves when `begun` has happened in it. */
  async function begin(session: Session, begun: (event: SessionEvent) => boolean): Promise<Stoppable> {
    const { live, close } = session.subscribe(session.seq)
    const { done } = await session.prompt('go')
    for await (const event of live) {
      if (sandlotEventOf(event)?.type === 'prompt_ended') throw new Error('the prompt ended by itself')
      if (begun(event)) break
    }
    close()
    return {
      async stop() {
        await session.cancel()
        const { reason } = await done
        if (reason !== 'cancelled') throw new Error(`the prompt ended as ${reason}`)
      },
    }
  }

  const ours: Ours = {
    name: NAMES[wire],
    whose,
    saying: (other) => {
      say = other
    },
    newSession: async (model, tools, mode = 'yolo') =>
      (await coreOf(model, tools)).manager.create({ userId: 'u_ada', cwd: '/workspace', mode }),
    async sessionOf(model, log) {
      const { store, manager } = await coreOf(model, 'echo')
      const id = newId('s')
      await store.sessions.create({ id, userId: 'u_ada', cwd: '/workspace', mode: 'yolo', at: 1 })
      for (let from = 0; from < log.length; from += 500)
        await store.log.append(id, log.slice(from, from + 500))
      return manager.get('u_ada', id)
    },
    async prompt(session) {
      const { done } = await session.prompt('go')
      const { reason, text } = await done
      if (reason !== 'completed') throw new Error(`the prompt ended as ${reason}: ${text ?? ''}`)
    },
    async runTools(model, other) {
      say = other
      await ours.prompt(await ours.newSession(model, 'echo'))
    },
    async firstToken(model) {
      const session = await ours.newSession(model, 'none')
      const { live, close } = session.subscribe(session.seq)
      const ended = ours.prompt(session)
      let first: number | undefined
      for await (const event of live) {
        if (event.sessionUpdate !== 'agent_message_chunk') continue
        first = performance.now()
        break
      }
      close()
      await ended
      return first
    },
    speak: async (model) =>
      begin(
        await ours.newSession(model, 'none'),
        ({ sessionUpdate }) => sessionUpdate === 'agent_message_chunk',
      ),
    runTree: async (model) =>
      begin(await ours.newSession(model, 'builtin'), (event) => metaOf(event).output !== undefined),
    askForLeave: async (model) =>
      begin(
        await ours.newSession(model, 'builtin', 'manual'),
        (event) => sandlotEventOf(event)?.type === 'approval_asked',
      ),
    async [Symbol.asyncDispose]() {
      for (const one of opened) await one[Symbol.asyncDispose]()
      for (const core of cores.values()) await (await core).leave()
      rmSync(folder, { recursive: true, force: true })
    },
  }
  return ours
}

/** The same promise to everybody who asks. */
function once<T>(make: () => Promise<T>): () => Promise<T> {
  let made: Promise<T> | undefined
  return () => (made ??= make())
}
