/** Conversations that come out alike over every wire: a provider's script, acts of people, and the log. */
import type { WireName } from '@sandlot/shared/account/models-api'
import type { NeutralAnswer, NeutralMessage } from '../support/wire-answers.ts'
import type { Line, Scene, Stage, State } from './stage.ts'

export interface Scenario extends Scene {
  name: string
  /** Acts of people. Default: say `go` and wait for the end. */
  act?: (stage: Stage) => Promise<void>
  /** The settled log, in the lines of `tell`. */
  tells: readonly string[]
  /** Further looks at the requests. Throws. */
  check?: (stage: Stage) => void
  /** The wires that cannot have it, and why. */
  not?: Partial<Record<WireName, string>>
}

type Call = NonNullable<NeutralAnswer['calls']>[number]
/** Lines of `tell`, in groups. */
type Lines = (string | (string | string[])[])[]
type More = Omit<Partial<Scenario>, 'name' | 'answers' | 'tells'>
const call = (id: string, name: string, args: string): Call => ({ id, name, args })
const echo = (id: string, text = id): Call => call(id, 'echo', JSON.stringify({ text }))
const calls = (...made: Call[]): Line => ({ calls: made })
const says = (text: string): Line => ({ text })
const done = says('Done.')
const thinks = (thought: string, ...made: Call[]): Line => ({ thought, calls: made })
const refuses = (status: number, words: string, headers: Record<string, string> = {}): Line => ({
  status,
  words,
  headers,
})

const end = ['text: Done.', 'end: completed']
const called = ({ name, args }: Call): string => `call: ${name} ${args}`
const echoed = (id: string, text = id): string[] => [called(echo(id, text)), `result: ${text}`]
const yes = ['text: Yes.', 'end: completed']
const andNow = ['user: and now?', ...yes]
const twice = async (stage: Stage): Promise<void> => {
  await stage.ask('go')
  await stage.ask('and now?')
}

/** The log of answers that are stored as they came, with the echo of each call. */
const asSaid = (answers: readonly Line[]): string[] =>
  answers.flatMap((line) => {
    if ('status' in line || line.after !== undefined) return []
    const { thought: first, text, calls: made = [] } = line
    const results = made.map(({ args }) => `result: ${(JSON.parse(args) as { text: string }).text}`)
    const said = [first && `thought: ${first}`, text && `text: ${text}`, ...made.map(called), ...results]
    return [...said.filter((one) => one !== undefined), ...(made.length === 0 ? ['end: completed'] : [])]
  })
/** `tells`: behind the first message. */
const scene = (name: string, answers: Line[], tells: Lines = asSaid(answers), more: More = {}): Scenario => ({
  name,
  answers,
  tells: ['user: go', tells].flat(3),
  ...more,
})
/** The same, and the chat goes on with another message. */
const sceneThenMore = (
  name: string,
  answers: Line[],
  tells: Lines = asSaid(answers),
  more: More = {},
): Scenario => scene(name, [...answers, says('Yes.')], [...tells, andNow], { act: twice, ...more })

// ── Looks at requests ───────────────────────────────────────────────────────────────────────────────────

function equal(got: unknown, wanted: unknown): void {
  const [is, should] = [JSON.stringify(got), JSON.stringify(wanted)]
  if (is !== should) throw new Error(`${is} instead of ${should}`)
}
/** Items of reasoning in each answer with calls. */
function reasoningIn(messages: readonly NeutralMessage[]): number[] {
  return messages.flatMap(({ calls: made, reasoning = [] }) => (made === undefined ? [] : [reasoning.length]))
}
const replays = (...wanted: number[]): More => ({
  check: (stage) => equal(reasoningIn(stage.asked(-1)), wanted),
})
const sends = (...wanted: string[]): More => ({
  check: (stage) =>
    equal(
      stage
        .asked(-1)
        .map(({ role }) => role)
        .slice(1),
      wanted,
    ),
})

// ── Answers ─────────────────────────────────────────────────────────────────────────────────────────────

const LARGE = '{"id":12345678901234567890,"price":1.5}'
const LETTERS = 'Grüße 日本語 👩‍👩‍👧‍👦 🇩🇪 é'

const ANSWERS: readonly Scenario[] = [
  scene('text', [done]),
  sceneThenMore('thoughts, then text', [{ thought: 'Hm. So be it.', text: 'Done.' }]),
  scene('one call', [calls(echo('a')), done]),
  scene('parallel calls', [calls(echo('a'), echo('b'), echo('c')), done]),
  scene('text before a call', [{ text: 'I look.', calls: [echo('a')] }, done], undefined, {
    check: (stage) => equal(stage.asked(-1)[2]?.text, 'I look.'),
  }),
  scene(
    'thoughts and calls in turns',
    [thinks('One.', echo('a')), thinks('Two.', echo('b')), thinks('Three.', echo('c')), done],
    undefined,
    replays(1, 1, 1),
  ),
  scene(
    'arguments that the length cuts off',
    [{ calls: [call('a', 'echo', '{"text":"a long')], finish: 'length' }, done],
    [String.raw`call: echo "{\"text\":\"a long"`, 'result: invalid_arguments', end],
  ),
  scene(
    'malformed arguments',
    [calls(call('a', 'echo', '{"text": hi there}')), done],
    [String.raw`call: echo "{\"text\": hi there}"`, 'result: invalid_arguments', end],
  ),
  scene(
    'an unknown tool',
    [calls(call('a', 'functions.fly away', '{"to":"x"}')), done],
    ['call: functions.fly away {"to":"x"}', 'result: unknown_tool', end],
  ),
  scene(
    'empty arguments',
    [calls(call('a', 'any', '')), calls(call('b', 'any', '{}')), done],
    ['call: any {}', 'result: {}', 'call: any {}', 'result: {}', end],
  ),
  scene(
    'an empty result',
    [calls(echo('a', '')), done],
    [called(echo('a', '')), 'result: The call succeeded and returned nothing.', end],
  ),
  scene('blank text before a call', [{ text: '\n\n', calls: [echo('a')] }, done]),
  scene('one id for all calls', [calls(echo('a'), echo('a', 'b')), calls(echo('a', 'c')), done]),
  scene(
    'numbers longer than JavaScript’s',
    [calls(call('a', 'any', LARGE)), done],
    [`call: any ${LARGE}`, `result: ${LARGE}`, end],
    { check: (stage) => equal(stage.requests[1]?.raw.includes('12345678901234567890'), true) },
  ),
  scene(
    'null for an optional argument, as strict mode makes models say',
    [calls(call('a', 'write', '{"text":"a","times":null}')), done],
    ['call: write {"text":"a"}', 'result: wrote {"text":"a"}', end],
  ),
  scene('characters of many bytes', [{ thought: LETTERS, text: LETTERS, calls: [echo('a', LETTERS)] }, done]),
  scene('4,000 deltas of arguments', [{ ...calls(echo('a', 'x'.repeat(3_989))), size: 1 }, done]),
  scene(
    'usage with cached and reasoning tokens',
    [
      { ...calls(echo('a')), usage: { input: 100, output: 40, cached: 60, reasoning: 30 } },
      { ...done, usage: { input: 150, output: 7, cached: 100, reasoning: 2 } },
    ],
    [
      'usage: 100 in, 60 cached, 40 out, 30 reasoning',
      echoed('a'),
      'text: Done.',
      'usage: 150 in, 100 cached, 7 out, 2 reasoning',
      'end: completed',
    ],
  ),
  sceneThenMore('cut off by its length', [{ text: 'Half', finish: 'length' }], ['text: Half', 'end: length']),
  sceneThenMore(
    'thoughts that the length cuts off',
    [{ thought: 'Hm.', finish: 'length' }],
    ['thought: Hm.', 'end: length'],
  ),
  sceneThenMore(
    'refused in the middle',
    [{ text: 'I', finish: 'content_filter' }],
    ['text: I', 'end: refusal'],
  ),
  sceneThenMore('refused by a content filter', [{ finish: 'content_filter' }], ['end: refusal']),
  scene('empty, and asked for once more', [{}, done], ['empty', end]),
  scene(
    'empty twice, and asked for a whole answer',
    [{}, {}, calls(echo('a')), done],
    ['empty', echoed('a'), end],
  ),
  sceneThenMore('always empty', [{}, {}, {}], ['empty', 'empty', 'end: completed']),
  sceneThenMore('thoughts that lead to nothing', [{ thought: 'Hm.' }, done], ['thought: Hm.', 'empty', end]),
  scene(
    'a call without thoughts behind one with them',
    [thinks('One.', echo('a')), calls(echo('b')), done],
    undefined,
    replays(1, 0),
  ),
  scene(
    'a call with thoughts behind one without them',
    [calls(echo('a')), thinks('Two.', echo('b')), done],
    undefined,
    replays(0, 1),
  ),
]

// ── Odd streams ─────────────────────────────────────────────────────────────────────────────────────────

const event = (type: string, members: object = {}): string =>
  `event: ${type}\ndata: ${JSON.stringify({ type, ...members })}\n\n`
const MYSTERY = { output_index: 8, item: { type: 'mystery', id: 'my_1' } }

/** Events, blocks and members that no version of ours knows. */
const UNKNOWN: Record<WireName, string[]> = {
  chat: [': comment\n\n', 'data: {"object":"new.thing","news":[1]}\n\n', 'id: 7\nretry: 10\n\n'],
  responses: [
    ': comment\n\n',
    event('response.new_thing.delta', { delta: 'x', output_index: 7 }),
    event('response.output_item.added', MYSTERY),
    event('response.output_item.done', MYSTERY),
  ],
  anthropic: [
    event('ping'),
    event('new_event', { index: 0, news: [1] }),
    event('content_block_start', { index: 8, content_block: { type: 'mystery', data: 'x' } }),
    event('content_block_delta', { index: 8, delta: { type: 'mystery_delta', more: 'y' } }),
    event('content_block_stop', { index: 8 }),
  ],
}

const PLACE: Record<WireName, RegExp> = {
  chat: /"tool_calls":\[\{"index":(\d)/,
  responses: /"output_index":(\d)/,
  anthropic: /"index":(\d)/,
}
/** Events of the first two items in turns, the second one first if it is to lead. */
const mixed =
  (leads: 0 | 1) =>
  (events: string[], wire: WireName): string[] => {
    const of = (place: number): string[] =>
      events.filter((one) => PLACE[wire].exec(one)?.[1] === String(place))
    const [first, second] = [of(leads), of(1 - leads)]
    const at = events.findIndex((one) => PLACE[wire].test(one))
    const pairs = first.flatMap((one, place) => [one, second[place] ?? ''])
    const rest = events.slice(at + first.length + second.length)
    return [...events.slice(0, at), ...pairs, ...second.slice(first.length), ...rest]
  }

/** The thought as the item behind the text. */
const thoughtLast = (events: string[], wire: WireName): string[] => {
  const isOf = (place: number) => (one: string) =>
    wire === 'chat'
      ? one.includes(['"reasoning_content"', '"content"'][place] ?? '')
      : PLACE[wire].exec(one)?.[1] === String(place)
  const moved = [1, 0].flatMap((place) => events.filter(isOf(place)))
  const at = events.findIndex(isOf(0))
  const swapped = moved.map((one) =>
    wire === 'chat' ? one : one.replace(/(index":)(\d)/, (_, name, place) => `${name}${1 - Number(place)}`),
  )
  return [...events.slice(0, at), ...swapped, ...events.slice(at + moved.length)]
}

const contradicts = (events: string[]): string[] => {
  const last = events.at(-1) ?? ''
  const other = last.replace('Hello.', 'Bye.').replace(String.raw`\"a\"`, String.raw`\"z\"`)
  return [...events.slice(0, -1), other]
}
const two = [called(echo('a')), called(echo('b')), 'result: a', 'result: b', ...end]
const FIRST = '{"text":"a fir'

const ODD: readonly Scenario[] = [
  scene('unknown events and blocks', [
    {
      text: 'I look.',
      calls: [echo('a')],
      events: ([first = '', ...rest], wire) => [first, ...UNKNOWN[wire], ...rest],
    },
    done,
  ]),
  sceneThenMore('thoughts behind the text', [{ thought: 'Hm.', text: 'Done.', events: thoughtLast }]),
  scene('two calls in turns', [{ ...calls(echo('a'), echo('b')), size: 4, events: mixed(0) }, done]),
  scene('two calls, the second first', [{ ...calls(echo('a'), echo('b')), events: mixed(1) }, done]),
  scene(
    'an end that contradicts the pieces: text stands, of a call the whole counts',
    [{ text: 'Hello.', calls: [echo('a')], events: contradicts }, done],
    ['text: Hello.', echoed('z'), end],
    { not: { chat: 'its end repeats nothing', anthropic: 'its end repeats nothing' } },
  ),
  scene('without its last event', [{ ...done, events: (events) => events.slice(0, -1) }], undefined, {
    not: { responses: 'no other event says how it ended' },
  }),
  ...(['end', 'destroy'] as const).flatMap((after) =>
    [{ text: 'A first' }, { thought: 'A first' }, calls(call('a', 'echo', FIRST))].map((line) =>
      scene(
        `broken off by ${after} in ${Object.keys(line).join()}`,
        [{ ...line, after }, done],
        ['withdrawn: stream_interrupted', end],
      ),
    ),
  ),
  scene(
    'broken off twice without a byte, and asked for a whole answer',
    [
      { after: 'destroy' },
      { after: 'destroy' },
      { thought: 'Hm.', text: 'I look.', calls: [echo('a')] },
      done,
    ],
    undefined,
    replays(1),
  ),
  ...(['server_error', 'rate_limit'] as const).map((failure) =>
    scene(
      `${failure} in the stream`,
      [{ text: 'A first', after: { failure } }, done],
      [`withdrawn: ${failure}`, end],
    ),
  ),
]

// ── Errors in place of an answer ────────────────────────────────────────────────────────────────────────

const OVERFLOW =
  "This model's maximum context length is 4000 tokens. However, your messages resulted in 9000 tokens."
const long = 'word '.repeat(400).trim()
const failing = (status: number, words: string, cause: string, headers = {}): Scenario =>
  sceneThenMore(`${status} ends it: ${cause}`, [refuses(status, words, headers)], [`end: error ${cause}`])

const ERRORS: readonly Scenario[] = [
  failing(400, 'Something is wrong with temperature.', 'invalid_request'),
  failing(401, 'Incorrect API key provided.', 'auth'),
  failing(404, 'The model `fake` does not exist or you do not have access to it.', 'invalid_request'),
  failing(429, 'Slow down.', 'rate_limit', { 'retry-after': '600' }),
  ...[429, 500, 529].map((status) =>
    scene(`${status}, and asked again`, [refuses(status, 'Not now.', { 'retry-after-ms': '2' }), done]),
  ),
  scene(
    'a key for another provider, which the log does not have',
    [refuses(401, 'Incorrect API key provided: sk-ant-api03-abcdefgh.')],
    ['end: error auth'],
    { check: (stage) => equal(/sk-(?:ant|test)/.test(JSON.stringify(stage.session.log)), false) },
  ),
  scene(
    'an overflow that is named: room is made, and it goes on',
    [calls(echo('a', long)), done, refuses(400, OVERFLOW), says('A summary.'), says('Yes.')],
    [echoed('a', long), end, 'user: and now?', 'compacted: overflow', yes],
    { ...sends('user'), learns: true, act: twice },
  ),
]

// ── Stop, restart, messages ─────────────────────────────────────────────────────────────────────────────

const stopAt =
  (state: State) =>
  async (stage: Stage): Promise<void> => {
    const { done: stopped } = await stage.until(state)
    await stage.session.cancel()
    await stopped
    await stage.ask('and now?')
  }
const restartAt =
  (state: State) =>
  async (stage: Stage): Promise<void> => {
    await stage.until(state)
    stage.gate.resolve()
    await stage.restart()
    await stage.ask('and now?')
  }
const hanging: readonly [State, Line, string[]][] = [
  [{ text: 'A first' }, { text: 'A first', after: 'hang' }, ['text: A first']],
  [{ thought: 'A first' }, { thought: 'A first', after: 'hang' }, ['thought: A first']],
  ['call', { calls: [call('a', 'echo', FIRST)], after: 'hang' }, []],
]
const held = thinks('Hm.', call('a', 'hold', '{}'))
const holds = ['thought: Hm.', 'call: hold {}']

const INTERRUPTED: readonly Scenario[] = [
  ...hanging.flatMap(([state, line, said]) => {
    const name = typeof state === 'string' ? state : Object.keys(state).join()
    const again = ['resumed', 'withdrawn: interrupted', ...end]
    const sent = sends('user', 'assistant', 'user')
    return [
      sceneThenMore(`Stop in ${name}`, [line], [said, 'end: cancelled'], { ...sent, act: stopAt(state) }),
      sceneThenMore(`a restart in ${name}`, [line, done], again, { ...sent, act: restartAt(state) }),
    ]
  }),
  sceneThenMore('Stop in a tool', [held], [holds, 'result: cancelled', 'end: cancelled'], {
    act: stopAt('tool'),
  }),
  sceneThenMore('a restart in a tool', [held, done], [holds, 'resumed', 'result: waited', end], {
    ...replays(1),
    act: restartAt('tool'),
  }),
  sceneThenMore(
    'a restart in the answer to a result',
    [thinks('One.', echo('a')), { thought: 'Hm.', text: 'A first', after: 'hang' }, done],
    ['thought: One.', echoed('a'), 'resumed', 'withdrawn: interrupted', end],
    { ...replays(1), act: restartAt({ text: 'A first' }) },
  ),
  scene(
    'a message in the middle of a prompt',
    [held, done],
    [holds, 'result: waited', 'user: also this', end],
    {
      ...sends('user', 'assistant', 'tool', 'user'),
      act: async (stage) => {
        const { done: ended } = await stage.until('tool')
        await stage.session.prompt('also this')
        stage.gate.resolve()
        await ended
      },
    },
  ),
]

// ── Images ──────────────────────────────────────────────────────────────────────────────────────────────

const DRAWS = [call('a', 'draw', '{}'), call('b', 'draw', '{"n":2}')]
const drawing = (name: string, images: boolean): Scenario => {
  const results = DRAWS.map(() => 'result: a picture')
  return scene(name, [calls(...DRAWS), done], ['user: image', DRAWS.map(called), results, end], {
    model: { profile: { images } },
    act: async (stage) => {
      await stage.ask('go', { images: [{ mimeType: 'image/png', data: 'iVBORw0KGgo=' }] })
    },
    check: (stage) => {
      equal(
        stage.asked(-1).reduce((sum, message) => sum + (message.images ?? 0), 0),
        images ? 3 : 0,
      )
      equal(stage.requests.at(-1)?.raw.split('takes no images').length, images ? 1 : 4)
    },
  })
}
const IMAGES = [
  drawing('images in a message and in results', true),
  drawing('a model that takes no images', false),
]

// ── Reasoning of earlier answers, and other models ──────────────────────────────────────────────────────

const began = [thinks('One.', echo('a')), done]
const thought = ['thought: One.', ...echoed('a'), ...end]
const second = ['thought: Two.', ...echoed('b')]
const REFUSED: Record<WireName, string> = {
  chat: "messages[2]: unknown member 'reasoning_content' is not allowed",
  responses: 'The encrypted content could not be verified. Reason: invalid_encrypted_content',
  anthropic: 'messages.1.content.0: Invalid `signature` in `thinking` block',
}
const refusesReasoning: Line = { status: 400, words: REFUSED }
const NEXT: Record<WireName, WireName> = { chat: 'responses', responses: 'anthropic', anthropic: 'chat' }
const FOREIGN = call('b|of:provider', 'echo', '{"text":"b"}')
const switching = async (stage: Stage): Promise<void> => {
  await stage.ask('go')
  await stage.session.chooseModel({ model: 'other' })
  await stage.ask('and now?')
}

const OVERLOADED = Array.from({ length: 4 }, () => refuses(529, 'Overloaded.', { 'retry-after-ms': '1' }))

/** Ids that another provider gave are those that every provider takes. */
function foreignIdsAreLegal(stage: Stage, at: number): void {
  const ids = stage.asked(at).flatMap(({ calls: made = [] }) => made.map(({ id }) => id))
  equal(
    ids.filter((id) => !/^[\w-]{1,40}$/.test(id)),
    [],
  )
}

const REPLAYS: readonly Scenario[] = [
  sceneThenMore('replay after a fork', began, thought, {
    ...replays(1),
    act: async (stage) => {
      const promptId = await stage.ask('go')
      const { manager } = stage.core
      stage.session = await manager.fork('u_ada', stage.session.id, { promptId, where: 'after' })
      await stage.ask('and now?')
    },
  }),
  sceneThenMore(
    'replay after an edited message',
    [...began, thinks('Two.', echo('b')), done],
    [thought, 'user: wrong', second, end],
    {
      ...replays(1),
      act: async (stage) => {
        const follows = await stage.ask('go')
        await stage.ask('wrong')
        await stage.ask('and now?', { follows })
      },
    },
  ),
  scene(
    'replay after a compaction, which drops whole turns',
    [
      thinks('One.', echo('a', long)),
      done,
      thinks('Two.', echo('b')),
      refuses(400, OVERFLOW),
      says('A summary.'),
      says('Yes.'),
    ],
    [
      ['thought: One.', echoed('a', long), end, 'user: and now?', second],
      // Results first, then a summary.
      ['compacted: overflow', 'compacted: overflow', yes],
    ],
    { ...replays(1), learns: true, act: twice },
  ),
  scene(
    'replay of a call that a person edited, as the model wrote it',
    [thinks('One.', call('a', 'write', '{"text":"a"}')), done],
    [
      'thought: One.',
      'call: write {"text":"a"}',
      'result: [The user changed this call before it ran: text is now "b"]\nwrote {"text":"b"}',
      end,
    ],
    {
      mode: 'manual',
      act: async (stage) => {
        const { done: ended } = await stage.session.prompt('go')
        await stage.happened('approval_asked')
        await stage.session.answer('a', 'allow_once', { input: { text: 'b' } })
        await ended
      },
      check: (stage) => {
        const [, , answer] = stage.asked(-1)
        equal(answer?.calls, [{ id: 'a', name: 'write', args: '{"text":"a"}' }])
        equal(answer?.reasoning?.length, 1)
      },
    },
  ),
  scene(
    'refused reasoning costs one request, and is not sent again',
    [...began, refusesReasoning, says('Yes.'), done],
    [thought, 'user: and now?', 'mended', yes, 'user: and then?', end],
    {
      ...replays(0),
      act: async (stage) => {
        await twice(stage)
        await stage.ask('and then?')
      },
    },
  ),
  scene(
    'refused reasoning between calls',
    [thinks('One.', echo('a')), refusesReasoning, done],
    ['thought: One.', echoed('a'), 'mended', end],
    replays(0),
  ),
  scene(
    'another model in mid-chat, of another account',
    [...began, says('Yes.')],
    [thought, 'model: other', andNow],
    { ...replays(0), other: () => ({ origin: 'elsewhere' }), act: switching },
  ),
  ...[(wire: WireName) => NEXT[wire], (wire: WireName) => NEXT[NEXT[wire]]].flatMap((to, at) => [
    scene(
      `another wire in mid-chat, and back (${at + 1})`,
      [thinks('One.', echo('a'), FOREIGN), done, thinks('Two.', echo('c')), done, says('Yes.')],
      [
        ['thought: One.', two, 'model: other', 'user: and now?'],
        ['thought: Two.', echoed('c'), end, 'model: fake', 'user: and then?', yes],
      ],
      {
        other: (wire) => ({ wire: to(wire) }),
        act: async (stage) => {
          await switching(stage)
          await stage.session.chooseModel({ model: 'fake' })
          await stage.ask('and then?')
        },
        check: (stage) => {
          const reasoning = [2, 3, 4].map((place) => reasoningIn(stage.asked(place)))
          equal(reasoning, [[0], [0, 1], [1, 0]])
          foreignIdsAreLegal(stage, 3)
        },
      },
    ),
    scene(
      `another wire between calls, since the first is overloaded (${at + 1})`,
      [thinks('One.', echo('a'), FOREIGN), ...OVERLOADED, thinks('Two.', echo('c')), done],
      ['thought: One.', two.slice(0, 4), 'model: other', 'thought: Two.', echoed('c'), end],
      { ...replays(0, 1), other: (wire) => ({ wire: to(wire) }) },
    ),
  ]),
]

export const SCENARIOS: readonly Scenario[] = [
  ...ANSWERS,
  ...ODD,
  ...ERRORS,
  ...INTERRUPTED,
  ...IMAGES,
  ...REPLAYS,
]
