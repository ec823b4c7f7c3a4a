/** Plays one script over HTTP against the plain loop, and gathers what came of it. */
import type { SessionEvent } from '@sandlot/shared/chat/events'
import { sandlotEventOf } from '@sandlot/shared/chat/events'
import { setTimeout as sleep } from 'node:timers/promises'
import { createHttpModel } from '../../src/model/http-model.ts'
import { memoryLog } from '../../src/plain/log-store.ts'
import { type PlainTool, plainTool } from '../../src/plain/plain-tool.ts'
import { Inbox } from '../../src/plain/inbox.ts'
import { type RunOptions, type RunResult, runAgent } from '../../src/plain/run-agent.ts'
import type { Tool } from '../../src/tools/tool.ts'
import { type RecordedRequest, type Scripted, startFakeProvider } from '../support/fake-provider.ts'

/** Actions in one run of the loop on the script's session. */
export interface Step {
  say?: RunOptions['prompt']
  /** Stop when this says so of an event. */
  stopAt?: (event: SessionEvent) => boolean
  /** Let the process die there: nothing more is stored. */
  dieAt?: (event: SessionEvent) => boolean
  /** Messages that come at the first event of which this is true. */
  meanwhile?: { at: (event: SessionEvent) => boolean; text: string; as: 'steer' | 'queue' }
}

export interface Script {
  name: string
  answers: readonly Scripted[]
  /** Default: one step that says “go”. */
  steps?: readonly Step[]
  options?: Partial<RunOptions>
  /** Answers of a second provider, which serves the fallback model. */
  second?: readonly Scripted[]
  /** Reasons of all ends, in order. */
  ends: readonly string[]
  /** The text of the last end, or the last answer. */
  text?: RegExp
  /** Requests made. */
  requests?: number
  /** Roles of the last request, shortened: s u a t. */
  roles?: string
  /** Outcomes by call, in the order of their announcement. */
  outcomes?: readonly string[]
  /** Further looks at what was sent. */
  check?: (played: Played) => void
}

export interface Played {
  log: readonly SessionEvent[]
  results: RunResult[]
  requests: readonly RecordedRequest[]
  secondRequests: readonly RecordedRequest[]
  /** The number of runs of each tool function. */
  ran: Record<string, number>
}

export async function play(script: Script): Promise<Played> {
  const provider = await startFakeProvider(script.answers)
  const other = await startFakeProvider(script.second ?? [])
  const ran: Record<string, number> = {}
  const log = memoryLog()
  const results: RunResult[] = []
  try {
    const about = { apiKey: 'sk-test', silence: { idleMs: 2_000, progressMs: 4_000 } }
    const fallback = createHttpModel({ ...about, baseUrl: other.baseUrl, model: 'second' })
    for (const step of script.steps ?? [{ say: 'go' }]) {
      const stop = new AbortController()
      const inbox = new Inbox()
      const run = runAgent({
        model: createHttpModel({
          ...about,
          baseUrl: provider.baseUrl,
          model: 'fake',
          contextWindow: 32_000,
        }),
        tools: tools(ran),
        system: 'You are a test.',
        retry: { attempts: 4, baseMs: 1, capMs: 2, longestWaitMs: 50 },
        fallbacks: script.second === undefined ? undefined : [fallback],
        ...script.options,
        prompt: step.say,
        log,
        inbox,
        signal: stop.signal,
      })
      let next = await run.next()
      let told = false
      while (next.done !== true) {
        const event = next.value
        if (!told && step.meanwhile?.at(event) === true) {
          told = true
          inbox.send(step.meanwhile.text, step.meanwhile.as)
        }
        if (step.stopAt?.(event) === true) stop.abort('cancelled')
        if (step.dieAt?.(event) === true) {
          await run.return(undefined as never)
          break
        }
        next = await run.next()
      }
      if (next.done === true) results.push(next.value)
    }
  } finally {
    await Promise.all([provider.close(), other.close()])
  }
  const { requests } = provider
  return { log: await log.read(), results, requests, secondRequests: other.requests, ran }
}

export function ends(log: readonly SessionEvent[]): string[] {
  return log.flatMap((event) => {
    const happened = sandlotEventOf(event)
    return happened?.type === 'prompt_ended' ? [happened.reason] : []
  })
}

function tools(ran: Record<string, number>): Tool[] {
  const text = { type: 'object', properties: { text: { type: 'string' } }, required: ['text'] }
  const nothing = { type: 'object', properties: {}, additionalProperties: false }
  const make = (
    name: string,
    readOnly: boolean,
    execute: PlainTool['execute'],
    more: Partial<PlainTool> = {},
  ) =>
    plainTool({
      name,
      description: `For tests: ${name}.`,
      parameters: nothing,
      readOnly,
      ...more,
      execute: (args, signal) => {
        ran[name] = (ran[name] ?? 0) + 1
        return execute(args, signal)
      },
    })
  let counted = 0
  return [
    make('echo', true, ({ text: said }) => String(said), { parameters: text }),
    make('write', false, ({ text: said }) => `wrote ${String(said)}`, { parameters: text }),
    make('count', true, () => `count ${++counted}`),
    make('empty', true, () => ''),
    make('broken', true, () => Promise.reject(new Error('It does not work.'))),
    make('vital', false, () => Promise.reject(new Error('It does not work.')), { fatal: true }),
    make('big', true, () => 'x'.repeat(60_000)),
    make('dirty', true, () => `a\0b\u{d800}c`),
    make('hang', true, async (_, signal) => {
      await sleep(60_000, undefined, { signal })
      return 'late'
    }),
    make('hang_write', false, async (_, signal) => {
      await sleep(60_000, undefined, { signal })
      return 'late'
    }),
    make('slow', true, () => sleep(5, 'slow'), {}),
  ]
}
