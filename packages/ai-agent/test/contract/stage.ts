/**
 * One wire's part in a scenario: a provider that plays its script over HTTP, the real loop, and a session for each
 * way to cut the bytes.
 */
import { isDeepStrictEqual } from 'node:util'
import { orAborted } from '@sandlot/shared/async/or-aborted'
import type { WireName } from '@sandlot/shared/account/models-api'
import { stringifyExactly } from '@sandlot/shared/base/exact-numbers'
import { type SessionEvent, sandlotEventOf, textOf } from '@sandlot/shared/chat/events'
import type { SandlotEvent } from '@sandlot/shared/chat/sandlot-event'
import type { Mode } from '@sandlot/shared/chat/mode'
import { createHttpModel, type HttpModelOptions } from '../../src/model/http-model.ts'
import type { Model } from '../../src/model/model.ts'
import type { Session } from '../../src/session/session.ts'
import type { Tool, ToolOutcome } from '../../src/tools/tool.ts'
import {
  AgentBench,
  type Core,
  echoTool,
  newSession,
  whenEvent,
  whenHappened,
  whenIdle,
} from '../support/agent-fixture.ts'
import { type FakeAnswer, type RecordedRequest, errorAnswer } from '../support/fake-provider.ts'
import { type NeutralAnswer, type NeutralMessage, WIRE_ANSWERS } from '../support/wire-answers.ts'
import { PNG } from '../tools/png.ts'
import { requestProblems, wireOf } from './legal-requests.ts'

/** An answer of the script, for whichever wire asks. */
export type Line = Spoken | Refusal

interface Spoken extends NeutralAnswer {
  /** Breaks off after the last delta, with this. `failure`: an error in the stream, by its code. */
  after?: 'destroy' | 'hang' | 'end' | { failure: string }
  /** Characters of a delta. */
  size?: number
  /** The events otherwise. */
  events?: (events: string[], wire: WireName) => string[]
}

interface Refusal {
  status: number
  words: string | Record<WireName, string>
  headers?: Record<string, string>
}

export interface Scene {
  answers: readonly Line[]
  mode?: Mode
  /** The model learns from it: each play gets a new one. */
  learns?: true
  model?: Partial<HttpModelOptions>
  /** The model `other`, which a session may choose, and which helps out. */
  other?: (wire: WireName) => Partial<HttpModelOptions>
}

/** Events behind the last delta of a stream. */
const TAIL: Record<WireName, number> = { chat: 3, responses: 2, anthropic: 3 }

/** OpenAI's word for a status, and Anthropic's. */
const ERROR_TYPES: Record<number, readonly [string, string]> = {
  400: ['invalid_request_error', 'invalid_request_error'],
  401: ['invalid_api_key', 'authentication_error'],
  404: ['model_not_found', 'not_found_error'],
  429: ['rate_limit_exceeded', 'rate_limit_error'],
  500: ['server_error', 'api_error'],
  529: ['overloaded', 'overloaded_error'],
}

/** A cut at every byte is in one of these. */
export const CUTS = Array.from({ length: 61 }, (_, cut) => cut)

/**
 * The stream in pieces that end at every 61st byte from `cut` on, in a long one at the 200th part. Every second one has
 * CRLF for its line ends. Undefined: an event a piece.
 */
function pieces(events: readonly string[], cut: number | undefined): (string | Uint8Array)[] {
  if (cut === undefined) return [...events]
  const whole = events.join('')
  const bytes = new TextEncoder().encode(cut % 2 === 0 ? whole : whole.replaceAll('\n', '\r\n'))
  const size = Math.max(CUTS.length, Math.ceil(bytes.length / 200))
  const count = Math.ceil((bytes.length - cut) / size)
  const ends = Array.from({ length: count + 1 }, (_, at) => cut + at * size)
  return ends
    .map((end, at) => bytes.subarray(at === 0 ? 0 : ends[at - 1], end))
    .filter(({ length }) => length > 0)
}

function played(line: Line, request: RecordedRequest, cut: number | undefined): FakeAnswer {
  const wire = wireOf(request)
  if ('status' in line) {
    const { status, words, headers } = line
    const message = typeof words === 'string' ? words : words[wire]
    const [openai, anthropic] = ERROR_TYPES[status] ?? ['error', 'error']
    const body =
      wire === 'anthropic'
        ? { type: 'error', error: { type: anthropic, message } }
        : { error: { message, type: openai, code: openai, param: null } }
    return errorAnswer(status, body, headers)
  }
  const { after, size, events = (all) => all } = line
  const { events: eventsOf, failure, whole } = WIRE_ANSWERS[wire]
  if (request.body.stream === false)
    return {
      headers: { 'content-type': 'application/json' },
      steps: pieces([JSON.stringify(whole(line))], cut),
    }
  const all = events(eventsOf(line, size), wire)
  const said = after === undefined ? all : all.slice(0, -TAIL[wire])
  if (typeof after === 'object') said.push(failure(after.failure, 'Something went wrong.'))
  return { steps: pieces(said, cut), ...(typeof after === 'string' ? { after } : {}) }
}

const WRITES = {
  type: 'object',
  properties: { text: { type: 'string' }, times: { type: 'integer' } },
  required: ['text'],
  additionalProperties: false,
}

export class Stage implements AsyncDisposable {
  readonly wire: WireName
  readonly bench: AgentBench
  core!: Core
  session!: Session
  /** The tool `hold` ends with it. */
  gate = Promise.withResolvers<void>()
  #begun = Promise.withResolvers<void>()
  #first = 0
  readonly #scene: Scene

  static async start(wire: WireName, scene: Scene): Promise<Stage> {
    const stage = new Stage(wire, scene, await AgentBench.start())
    await stage.#open()
    return stage
  }

  private constructor(wire: WireName, scene: Scene, bench: AgentBench) {
    this.wire = wire
    this.bench = bench
    this.#scene = scene
  }

  /** The scenario once more, in a session of its own. */
  async play(
    cut: number | undefined,
    act: (stage: Stage) => Promise<void>,
  ): Promise<readonly SessionEvent[]> {
    const { provider } = this.bench
    this.#first = provider.requests.length
    this.gate = Promise.withResolvers()
    this.#begun = Promise.withResolvers()
    provider.add(
      ...this.#scene.answers.map((line) => (request: RecordedRequest) => played(line, request, cut)),
    )
    if (this.#scene.learns === true && cut !== undefined) await this.#reopen()
    this.session = await newSession(this.core, this.#scene.mode)
    await act(this)
    return this.session.log
  }

  /** Requests of this play. */
  get requests(): RecordedRequest[] {
    return this.bench.provider.requests.slice(this.#first)
  }

  /** Faults of this play's requests, and answers that were not asked for. */
  get problems(): string[] {
    const { remaining } = this.bench.provider
    const found = this.requests.flatMap((request, at) =>
      requestProblems(request).map((problem) => `request ${at + 1}: ${problem}`),
    )
    return remaining === 0 ? found : [...found, `${remaining} answers are left`]
  }

  /** The messages of a request of this play, by its place. */
  asked(at: number): NeutralMessage[] {
    const request = this.requests.at(at)
    return request === undefined ? [] : WIRE_ANSWERS[wireOf(request)].messages(request.body)
  }

  async ask(text: string, options: Parameters<Session['prompt']>[1] = {}): Promise<string> {
    const { promptId, done } = await this.session.prompt(text, options)
    await done
    return promptId
  }

  /** Asks, and resolves when this much was shown, or when the tool runs. */
  async until(state: State): Promise<{ done: Promise<unknown> }> {
    const { done } = await this.session.prompt('go')
    if (state === 'tool') await this.#begun.promise
    else await whenShown(this.session, state)
    return { done }
  }

  async happened(type: SandlotEvent['type']): Promise<void> {
    await whenHappened(this.session, type)
  }

  /** Like the end of the process and the next one. Resolves when nothing runs. */
  async restart(): Promise<void> {
    const { id, log } = this.session
    await this.#reopen()
    this.session = await this.core.manager.get('u_ada', id)
    await whenIdle(this.session)
    const [before, after] = [log, this.session.log.slice(0, log.length)].map((one) =>
      JSON.parse(JSON.stringify(one)),
    )
    if (!isDeepStrictEqual(before, after)) throw new Error('the restart lost a part of the log')
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.bench[Symbol.asyncDispose]()
  }

  async #reopen(): Promise<void> {
    await this.core.leave()
    await this.#open()
  }

  async #open(): Promise<void> {
    const { model, other } = this.#scene
    const choices = other === undefined ? [] : [this.#model({ label: 'other', ...other(this.wire) })]
    this.core = await this.bench.core({
      tools: this.#tools(),
      parts: { model: this.#model(model), choices, fallbacks: choices },
    })
  }

  /** Thinks hard, with a budget: the form of thought with most conditions. */
  #model(more: Partial<HttpModelOptions> = {}): Model {
    const { wire = this.wire } = more
    const profile = {
      thinking: 'budget',
      thoughtLevels: ['high'],
      strictTools: true,
      ...more.profile,
    } as const
    const { baseUrl } = this.bench.provider
    const about = { baseUrl, apiKey: 'sk-test', model: 'fake', origin: `at ${wire}` }
    const model = createHttpModel({ ...about, ...more, wire, profile })
    return model.atLevel?.('high') ?? model
  }

  #tools(): Tool[] {
    const tool = (name: string, run: (input: Input, signal: AbortSignal) => Promise<Outcome>): Tool => ({
      name,
      description: `Does ${name}.`,
      kind: 'other',
      input: {
        parameters: name === 'write' ? WRITES : { type: 'object' },
        passesNumbersOn: true,
        check: () => Promise.resolve([]),
      },
      readOnly: name !== 'write',
      title: () => name,
      // oxlint-disable-next-line require-yield
      execute: async function* (input, { signal }) {
        return { status: 'completed', ...(await run(input, signal)) }
      },
    })
    const image = { type: 'image', mimeType: 'image/png', data: PNG.toString('base64') } as const
    return [
      echoTool(),
      tool('write', (input) => Promise.resolve({ forModel: `wrote ${stringifyExactly(input)}` })),
      tool('any', (input) => Promise.resolve({ forModel: stringifyExactly(input) ?? '' })),
      tool('draw', () =>
        Promise.resolve({ forModel: 'a picture', content: [{ type: 'content', content: image }] }),
      ),
      tool('hold', async (_, signal) => {
        this.#begun.resolve()
        await orAborted(this.gate.promise, signal)
        return { forModel: 'waited' }
      }),
    ]
  }
}

type Input = Record<string, unknown>
type Outcome = Pick<ToolOutcome, 'forModel' | 'content'>

/** Streamed so far: this text, this thought, a call; or `tool`: the tool `hold` runs. */
export type State = { text: string } | { thought: string } | 'call' | 'tool'

async function whenShown(session: Session, state: Exclude<State, 'tool'>): Promise<void> {
  let shown = ''
  await whenEvent(session, (event) => {
    if (state === 'call') return sandlotEventOf(event)?.type === 'call_drafted'
    const [kind, wanted] =
      'text' in state ? ['agent_message_chunk', state.text] : ['agent_thought_chunk', state.thought]
    const { sessionUpdate } = event
    const isPiece = sessionUpdate === 'agent_message_chunk' || sessionUpdate === 'agent_thought_chunk'
    if (isPiece && sessionUpdate === kind) shown += textOf(event)
    return shown.includes(wanted)
  })
}
