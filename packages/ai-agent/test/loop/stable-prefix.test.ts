/**
 * One chat of forty requests, recorded through the real loop. On every wire each request begins with the one before it,
 * but for the causes below, each counted: what a provider has cached of a chat serves again.
 */
import { expect, test } from 'vitest'
import { type SessionEvent, metaOf, sandlotEventOf } from '@sandlot/shared/chat/events'
import { z } from 'zod'
import { type ModelAnswer, type ModelRequest, type ReplayItem, ModelError } from '../../src/model/model.ts'
import { DEFAULT_PROFILE } from '../../src/model/profiles.ts'
import { anthropicWire } from '../../src/model/wires/anthropic/anthropic-wire.ts'
import { responsesWire } from '../../src/model/wires/responses/responses-wire.ts'
import { chatWire } from '../../src/model/wires/chat/chat-wire.ts'
import type { JsonObject } from '../../src/model/json.ts'
import type { Wire } from '../../src/model/wires/wire.ts'
import type { Session } from '../../src/session/session.ts'
import { createRegistry } from '../../src/tools/registry.ts'
import { type Tool, defineTool } from '../../src/tools/tool.ts'
import { AgentBench, type Core, echoTool, whenIdle } from '../support/agent-fixture.ts'
import { type ScriptedAnswer, type ScriptedModel, scriptedModel } from '../support/scripted-model.ts'

/** Everything that may change the beginning of a request, in the order in which it is looked for. */
const CAUSES = ['edit', 'summary', 'pruning', 'mended', 'model', 'tools'] as const

interface WireOfChat {
  wire: Wire
  /** The answer's items as this wire gets them, of a thought and this many calls. */
  replay: (calls: number) => ReplayItem[]
  /** The parts of a body that a provider caches, in its order and without marks: tools, system, messages. */
  parts: (body: JsonObject) => unknown[]
}

const TURNS = z.array(z.object({ role: z.string(), content: z.array(z.unknown()) }))

const callItems = (count: number): ReplayItem[] =>
  Array.from({ length: count }, (_, place) => ({ call: place }))

const WIRES: readonly WireOfChat[] = [
  {
    wire: chatWire,
    replay: () => [{ raw: { reasoning_content: 'Let me see.' } }],
    parts: ({ tools, messages }) => [tools, ...z.array(z.unknown()).parse(messages)],
  },
  {
    wire: responsesWire,
    replay: (count) => [
      { raw: { type: 'reasoning', id: 'rs_1', summary: [], encrypted_content: 'xyz' } },
      ...callItems(count),
    ],
    parts: ({ tools, instructions, input }) => [tools, instructions, ...z.array(z.unknown()).parse(input)],
  },
  {
    wire: anthropicWire,
    replay: (count) => [
      { raw: { type: 'thinking', thinking: 'Let me see.', signature: 'xyz' } },
      ...callItems(count),
    ],
    // Blocks of one role are one message, which a block that follows makes longer.
    parts: ({ tools, system, messages }) => [
      tools,
      system,
      ...TURNS.parse(messages).flatMap(({ role, content }) => content.map((block) => ({ role, block }))),
    ],
  },
]

interface Sent {
  model: string
  request: ModelRequest
  session: string
  log: readonly SessionEvent[]
}

const BACKGROUND = { id: 'bg1', command: 'a'.repeat(32), boot: 'b1', line: 'make' }

/** A tool of this name that says this much, and has a hint for the system text. */
function tool(name: string, says: string, data?: Record<string, unknown>): Tool {
  return {
    ...defineTool({
      name,
      description: `It is ${name}.`,
      kind: 'other',
      input: z.strictObject({}),
      output: z.unknown(),
      readOnly: true,
      title: () => name,
      // oxlint-disable-next-line require-yield
      async *execute() {
        return { status: 'completed', forModel: says, ...(data === undefined ? {} : { data }) }
      },
    }),
    runs: { hint: `Use ${name}.` },
  }
}

let calls = 0
const text = (words: string): Partial<ModelAnswer> => ({ text: words })
const call = (...names: string[]): Partial<ModelAnswer> => ({
  calls: names.map((name) => ({ id: `call-${++calls}`, name, args: name === 'echo' ? { text: 'hi' } : {} })),
  finish: 'tool_calls',
})

/** A chat whose model says what the test told it to, and everything that it was asked. */
class Chat implements AsyncDisposable {
  readonly sent: Sent[] = []
  instructions = ''
  tools: Tool[] = [
    echoTool(),
    tool('start', 'It runs.', { background: BACKGROUND }),
    tool('big', 'x '.repeat(30_000)),
  ]
  jobEnded = false
  session!: Session
  readonly #answers: ScriptedAnswer[] = []
  readonly #bench: AgentBench
  #clock = 0
  core!: Core
  readonly wire: WireOfChat

  private constructor(bench: AgentBench, wire: WireOfChat) {
    this.#bench = bench
    this.wire = wire
  }

  static async open(wire: WireOfChat): Promise<Chat> {
    const chat = new Chat(await AgentBench.start(), wire)
    await chat.#start()
    chat.session = await chat.core.manager.create({ userId: 'u_ada', cwd: '/workspace', mode: 'yolo' })
    return chat
  }

  async #start(): Promise<void> {
    this.core = await this.#bench.core({
      parts: {
        model: this.#model('first'),
        fallbacks: [this.#model('second')],
        instructions: async () => ({ text: this.instructions }),
        // In another order each time, as tools of servers come.
        tools: async () => {
          this.tools.reverse()
          const registry = createRegistry()
          registry.register(...this.tools)
          return registry
        },
        pollJobs: async (_, jobs) =>
          jobs.map((job) => ({ job, state: { state: this.jobEnded ? 'gone' : 'running' } as const })),
        // A day later each time: no date may be in a request.
        now: () => (this.#clock += 86_400_000),
      },
    })
  }

  #model(name: string): ScriptedModel {
    return scriptedModel(
      () => async (request, signal) => {
        // A name for the chat is asked for outside of it.
        if (request.maxTokens !== undefined) return {}
        this.sent.push({
          model: name,
          request: structuredClone(request),
          session: this.session.id,
          log: [...this.session.log],
        })
        const next = this.#answers.shift()
        if (next === undefined) throw new Error('the script has no answer')
        const said = typeof next === 'function' ? await next(request, signal) : next
        return said.calls === undefined ? said : { ...said, replay: this.wire.replay(said.calls.length) }
      },
      { name, wire: this.wire.wire.name, origin: name },
    )
  }

  /** One prompt to its end, with these answers. Returns its id. */
  async say(
    words: string,
    answers: readonly ScriptedAnswer[],
    options: Parameters<Session['prompt']>[1] = {},
  ): Promise<string> {
    this.#answers.push(...answers)
    const { promptId } = await this.session.prompt(words, options)
    await whenIdle(this.session)
    expect(this.#answers).toEqual([])
    return promptId
  }

  async restart(): Promise<void> {
    await this.core.leave()
    await this.#start()
    this.session = await this.core.manager.get('u_ada', this.session.id)
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#bench[Symbol.asyncDispose]()
  }
}

const failing =
  (errorClass: ConstructorParameters<typeof ModelError>[0], retryable = false) =>
  (): never => {
    throw new ModelError(errorClass, 'It failed.', { retryable })
  }

async function firstHalf(chat: Chat): Promise<void> {
  chat.instructions = 'From the team:\n\nBe kind.'
  await chat.say('one', [call('echo'), text('1')])
  chat.instructions = 'From the team:\n\nBe kind.\n\nFrom AGENTS.md:\n\nUse tabs.'
  await chat.say('two', [call('start'), text('2')])
  const steered: ScriptedAnswer = async () => {
    await chat.session.prompt('and this', { whenBusy: 'steer' })
    return call('echo')
  }
  await chat.say('three', [steered, text('3')])
  await chat.session.setMode('manual')
  const image = { mimeType: 'image/png', data: 'iVBORw0KGgo=' }
  await chat.say('four', [call('echo', 'echo'), text('4')], { images: [image] })
  await chat.say('five', [text('5')], { author: { id: 'u_bob', name: 'Bob' } })
  const ends: ScriptedAnswer = () => {
    chat.jobEnded = true
    return call('echo')
  }
  await chat.say('six', [ends, text('6')])
  chat.tools.push(tool('late', 'A server came late.'))
  await chat.say('seven', [call('late'), text('7')])
  chat.instructions = ''
  await chat.say('eight', [text(''), text('8')])
  await chat.say('nine', [failing('server_error', true), text('9')])
  const stopped: ScriptedAnswer = async (_, signal) => {
    await chat.session.cancel()
    signal.throwIfAborted()
    return text('never')
  }
  await chat.say('ten', [stopped])
  await chat.say('eleven', [text('11')])
  const full = { ...call('big'), usage: { input: 90_000, output: 10 } }
  await chat.say('twelve', [call('big'), call('big'), full, text('12')])
}

async function secondHalf(chat: Chat): Promise<void> {
  chat.instructions = 'From the user:\n\nI am Ada.'
  await chat.say('thirteen', [text('13')])
  await chat.say('/compact', [text('A summary.')])
  const before = await chat.say('fourteen', [text('14')])
  chat.instructions = 'From the user:\n\nI am Ada Lovelace.'
  await chat.say('fifteen', [call('echo'), text('15')])
  const parent = chat.sent.findIndex(({ log }) => log.some((event) => metaOf(event).promptId === before))
  await chat.say('fifteen, in other words', [text('15')], { follows: before })
  expect(begins(chat.wire, chat.sent[parent], chat.sent.at(-1))).toBe(true)
  await chat.restart()
  await chat.say('sixteen', [call('echo'), text('16')])
  chat.tools = chat.tools.filter(({ name }) => name !== 'late')
  await chat.say('seventeen', [text('17')])
  await chat.say('eighteen', [call('echo'), failing('quota'), text('18')])
  const last = await chat.say('nineteen', [call('echo'), failing('replay_refused'), text('19')])
  chat.session = await chat.core.manager.fork('u_ada', chat.session.id, { promptId: last, where: 'after' })
  await chat.say('twenty', [call('echo'), text('20')])
  await chat.say('twenty-one', [call('echo'), failing('invalid_history'), text('21')])
  await chat.say('twenty-two', [text('22')])
}

const WITHOUT_MARKS: ReadonlySet<string> = new Set(['cache_control'])

function partsOf({ wire, parts }: WireOfChat, { request }: Sent): string[] {
  const options = { model: 'm', streaming: true, profile: DEFAULT_PROFILE, refused: WITHOUT_MARKS }
  return parts(wire.body(request, options)).map((part) => JSON.stringify(part))
}

function begins(of: WireOfChat, before: Sent | undefined, now: Sent | undefined): boolean {
  if (before === undefined || now === undefined) return false
  const parts = partsOf(of, now)
  return partsOf(of, before).every((part, place) => part === parts[place])
}

function causeOf(before: Sent, now: Sent): (typeof CAUSES)[number] | 'none' {
  const fresh = now.session === before.session ? now.log.slice(before.log.length) : []
  const happened = fresh.map(sandlotEventOf)
  const compacted = happened.find((event) => event?.type === 'compacted')
  const names = ({ request }: Sent): string =>
    JSON.stringify(request.tools?.map(({ name }) => name).toSorted())
  const is: Record<(typeof CAUSES)[number], boolean> = {
    edit: happened.some((event) => event?.type === 'prompt_started' && event.follows !== undefined),
    summary: compacted !== undefined && compacted.summary !== '',
    pruning: compacted?.summary === '',
    mended: happened.some((event) => event?.type === 'history_mended'),
    model: now.model !== before.model,
    tools: names(now) !== names(before),
  }
  return CAUSES.find((cause) => is[cause]) ?? 'none'
}

test.each(WIRES)(
  'a chat of forty requests over $wire.name: each begins with the one before, but for causes that are counted',
  async (of) => {
    await using chat = await Chat.open(of)
    await firstHalf(chat)
    await secondHalf(chat)
    const { sent } = chat
    expect(sent.length).toBeGreaterThanOrEqual(40)
    const happened = chat.session.log.map((event) => sandlotEventOf(event)?.type)
    expect(happened).toEqual(expect.arrayContaining(['background_ended', 'compacted', 'model_changed']))
    expect(happened.filter((type) => type === 'instructions')).toHaveLength(5)
    expect(sent.some(({ request }) => request.messages.at(-1)?.content === 'and this')).toBe(true)
    const second = sent[1]
    expect(second && partsOf(of, second).join('')).toMatch(/Let me see|xyz/)
    const counts: Partial<Record<string, number>> = {}
    for (const [place, now] of sent.entries()) {
      const before = sent[place - 1]
      if (before === undefined || begins(of, before, now)) continue
      const cause = causeOf(before, now)
      counts[cause] = (counts[cause] ?? 0) + 1
    }
    expect(counts).toEqual({ edit: 1, summary: 1, pruning: 1, mended: 2, model: 2, tools: 2 })
  },
)
