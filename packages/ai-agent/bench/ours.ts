/** Sandlot itself: the session, the loop, the scheduler with all policies and the SQLite store, as a deployment has them. */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { SessionEvent } from '@sandlot/shared/events'
import { newId } from '@sandlot/shared/ids'
import { createOpenAIModel } from '../src/model/openai.ts'
import { createRegistry } from '../src/tools/registry.ts'
import type { Session } from '../src/session.ts'
import { defineTool } from '../src/tools/define-tool.ts'
import { z } from 'zod'
import { openCore } from '../test/agent-fixture.ts'
import type { Contender } from './contender.ts'

type Core = Awaited<ReturnType<typeof openCore>>

export interface Ours extends Contender, AsyncDisposable {
  /** A new session whose model plays this recording. */
  newSession(model: string, tools: 'echo' | 'none'): Promise<Session>
  /** A session with this log, as it is after a start. */
  sessionOf(model: string, log: readonly SessionEvent[]): Promise<Session>
  /** A prompt in it, to its end. Rejects unless the model has answered. */
  prompt(session: Session): Promise<void>
  /** What the tool does from now on. */
  saying(say: (text: string) => string): void
}

export async function openOurs(baseUrl: string): Promise<Ours> {
  const whose = 'sandlot'
  const folder = mkdtempSync(join(tmpdir(), 'sandlot-bench-'))
  let say = (text: string): string => text
  const echo = defineTool({
    id: 'echo',
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

  /** The model belongs to a core, so each recording has one; all share nothing but the process. */
  function coreOf(model: string, tools: 'echo' | 'none'): Promise<Core> {
    const key = `${model}-${tools}`
    const core =
      cores.get(key) ??
      openCore(
        mkdtempSync(join(folder, 'core-')),
        { baseUrl },
        {
          tools: [echo],
          parts: {
            model: createOpenAIModel({ baseUrl, apiKey: whose, model }),
            ...(tools === 'none' ? { tools: () => Promise.resolve(noTools) } : {}),
          },
        },
      )
    cores.set(key, core)
    return core
  }

  const ours: Ours = {
    name: 'Sandlot',
    whose,
    saying: (other) => {
      say = other
    },
    newSession: async (model, tools) =>
      (await coreOf(model, tools)).manager.create({ userId: 'u_ada', cwd: '/workspace', mode: 'yolo' }),
    async sessionOf(model, log) {
      const { store, manager } = await coreOf(model, 'echo')
      const id = newId('s')
      await store.createSession({ id, userId: 'u_ada', cwd: '/workspace', mode: 'yolo', at: 1 })
      for (let from = 0; from < log.length; from += 500) await store.append(id, log.slice(from, from + 500))
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
    async [Symbol.asyncDispose]() {
      for (const core of cores.values()) await (await core).leave()
      rmSync(folder, { recursive: true, force: true })
    },
  }
  return ours
}
