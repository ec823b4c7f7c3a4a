/** Ends of prompts, failures on the way, and later prompts: the session continues in every case. */
import type { Script, Step } from './run-script.ts'
import { announced, call, calls, done, echo, refuses, says, stream, times } from './words.ts'

const WRITTEN = '<tool_call>\n{"name": "echo", "arguments": {"text": "hi"}}\n</tool_call>'
const twice: readonly Step[] = [{ say: 'go' }, { say: 'and now?' }]

export const ENDINGS: readonly Script[] = [
  {
    name: 'two prompts',
    answers: [calls(echo('a')), done, says('Yes.')],
    steps: twice,
    ends: ['completed', 'completed'],
    roles: 'suatau',
  },
  {
    name: 'bug 2: an empty answer is asked for once more',
    answers: [says(''), says('Here.')],
    ends: ['completed'],
    text: /^Here\.$/,
    roles: 'suu',
  },
  {
    name: 'bug 2: still empty is a sentence',
    answers: [says(''), says(' '), says(''), says('Yes.')],
    steps: twice,
    ends: ['completed', 'completed'],
    roles: 'suuau',
  },
  {
    name: 'bug 2: empty after a failure names what failed',
    answers: [calls(call('a', 'broken')), says(''), says(''), says('')],
    ends: ['completed'],
    text: /broken \(tool error\)/,
  },
  {
    name: '401 is a sentence, and the next message works',
    answers: [refuses(401, 'Incorrect API key'), says('Yes.')],
    steps: twice,
    ends: ['error', 'completed'],
    roles: 'suau',
  },
  {
    name: '401 after calls',
    answers: [calls(echo('a')), refuses(401, 'Incorrect API key'), says('Yes.')],
    steps: twice,
    ends: ['error', 'completed'],
    roles: 'suatau',
  },
  {
    name: 'four times overloaded',
    answers: [...times(4, () => refuses(503, 'overloaded')), says('Yes.')],
    steps: twice,
    ends: ['error', 'completed'],
    roles: 'suau',
  },
  {
    name: 'bug 19: a wait that is too long ends it',
    answers: [refuses(429, 'slow down', { 'retry-after': '600' })],
    ends: ['error'],
    text: /10 minutes/,
    requests: 1,
  },
  {
    name: 'bug 19: a short wait is waited',
    answers: [refuses(429, 'slow down', { 'retry-after-ms': '5' }), says('Yes.')],
    ends: ['completed'],
    requests: 2,
  },
  {
    name: 'a content filter is a refusal',
    answers: [stream([], 'content_filter'), says('Yes.')],
    steps: twice,
    ends: ['refusal', 'completed'],
    roles: 'suau',
  },
  {
    name: 'an answer cut by its length',
    answers: [stream([{ content: 'Half' }], 'length'), says('Yes.')],
    steps: twice,
    ends: ['length', 'completed'],
    roles: 'suau',
  },
  {
    name: 'the limit of turns',
    answers: [...times(3, (n) => calls(echo(`c${n}`, `${n}`))), says('Yes.')],
    steps: twice,
    options: { maxTurns: 3 },
    ends: ['max_turns', 'completed'],
    roles: 'suatatatau',
  },
  {
    name: 'bug 24: the same call for ever',
    answers: [...times(5, (n) => calls(echo(`c${n}`, 'same'))), says('Yes.')],
    steps: twice,
    ends: ['loop', 'completed'],
    outcomes: ['completed', 'completed', 'completed', 'failed no_progress', 'failed no_progress'],
  },
  {
    name: 'bug 24: A-B-A-B',
    answers: times(8, (n) => calls(echo(`c${n}`, n % 2 === 0 ? 'a' : 'b'))),
    ends: ['loop'],
  },
  {
    name: 'bug 24: polling that changes goes on',
    answers: [...times(8, (n) => calls(call(`c${n}`, 'count'))), done],
    ends: ['completed'],
  },
  {
    name: 'chanting: withdrawn, asked again',
    answers: [says('I will do it. '.repeat(600)), says('Done.')],
    ends: ['completed'],
    text: /^Done\.$/,
    requests: 2,
  },
  {
    name: 'chanting: the request is closed though its answer has no end',
    answers: [
      { ...stream([{ content: 'I will do it. '.repeat(600) }], null, []), after: 'hang' },
      says('Done.'),
    ],
    ends: ['completed'],
    check: ({ requests }) => {
      if (requests[0]?.aborted !== true) throw new Error('the provider goes on')
    },
  },
  {
    name: 'chanting twice ends the prompt',
    answers: [says('I will do it. '.repeat(600)), says('I will do it. '.repeat(600)), says('Yes.')],
    steps: twice,
    ends: ['loop', 'completed'],
    roles: 'suau',
  },
  {
    name: 'a call written as text: withdrawn, asked again, and run when it comes as one',
    answers: [says(`I will look.\n${WRITTEN}`), calls(echo('a')), says('Done.')],
    ends: ['completed'],
    text: /^Done\.$/,
    outcomes: ['completed'],
    requests: 3,
    roles: 'suat',
  },
  {
    name: 'a call written as text twice ends the prompt, and is never run',
    answers: [says(WRITTEN), says(`Again:${WRITTEN}`), says('Yes.')],
    steps: twice,
    ends: ['error', 'completed'],
    outcomes: [],
    roles: 'suau',
  },
  {
    name: 'a call written as text with words behind it is text',
    answers: [says(`${WRITTEN} is how a call looks.`)],
    ends: ['completed'],
    text: /is how a call looks\.$/,
    requests: 1,
  },
  {
    name: 'a budget of calls',
    answers: [calls(echo('a'), echo('b'), echo('c')), says('Yes.')],
    steps: twice,
    options: { budgets: { calls: 2 } },
    ends: ['budget', 'completed'],
    outcomes: ['completed', 'completed', 'failed cancelled'],
    roles: 'suatttau',
  },
  {
    name: 'bug 27: a message that came meanwhile is not lost with a budget that is used up: it has one of its own',
    answers: [calls(echo('a')), says('Yes.')],
    steps: [{ say: 'go', meanwhile: { at: announced('a'), text: 'also this', as: 'steer' } }],
    options: { budgets: { calls: 1 } },
    ends: ['budget', 'completed'],
    roles: 'suatau',
  },
  {
    name: 'a budget of tokens',
    answers: [calls(echo('a')), calls(echo('b')), says('Yes.')],
    steps: twice,
    options: { budgets: { tokens: 30 } },
    ends: ['budget', 'completed'],
    roles: 'suatatau',
  },
  {
    name: 'stop at the first failure',
    answers: [calls(call('a', 'broken'), call('b', 'write', { text: 'x' })), says('Yes.')],
    steps: [{ say: { text: 'go', onError: 'stop' } }, { say: 'and now?' }],
    ends: ['error', 'completed'],
    outcomes: ['failed tool_error', 'failed cancelled'],
    roles: 'suattau',
  },
  {
    name: 'a tool that nothing goes without',
    answers: [calls(call('a', 'vital'), call('b', 'write', { text: 'x' })), says('Yes.')],
    steps: twice,
    ends: ['error', 'completed'],
    outcomes: ['failed tool_error', 'failed cancelled'],
    roles: 'suattau',
  },
  {
    name: 'a failure that ends nothing',
    answers: [calls(call('a', 'broken'), call('b', 'write', { text: 'x' })), done],
    ends: ['completed'],
    outcomes: ['failed tool_error', 'completed'],
  },
  {
    name: 'a call that takes too long',
    answers: [calls(call('a', 'hang')), done],
    options: { toolTimeoutMs: 1_000 },
    ends: ['completed'],
    outcomes: ['failed timeout'],
    roles: 'suat',
  },
  // ── Other models, other forms ──
  {
    name: 'fallback model: another one answers when this one is overloaded',
    answers: times(4, () => refuses(529, 'overloaded')),
    second: [says('Second.')],
    ends: ['completed'],
    text: /Second/,
  },
  {
    name: 'fallback model: at once when there is no quota left',
    answers: [refuses(429, 'insufficient_quota')],
    second: [calls(echo('a')), done],
    ends: ['completed'],
    requests: 1,
  },
  {
    name: 'fallback model: a wrong key is no reason',
    answers: [refuses(401, 'Incorrect API key')],
    second: [],
    ends: ['error'],
  },
  {
    name: 'fallback model: the next prompt begins with the first again',
    answers: [refuses(429, 'insufficient_quota'), says('First.')],
    second: [says('Second.')],
    steps: twice,
    ends: ['completed', 'completed'],
    text: /First/,
  },
  {
    name: 'a history that is refused goes once more in its plainest form',
    answers: [
      stream(
        [
          { reasoning_content: 'Hm.' },
          { tool_calls: [{ index: 0, id: 'a', function: { name: 'echo', arguments: '{"text":"x"}' } }] },
        ],
        'tool_calls',
      ),
      refuses(400, 'messages: roles must alternate'),
      done,
    ],
    ends: ['completed'],
    roles: 'suat',
    check: ({ requests }) => equal(requests[2]?.raw.includes('Hm.'), false),
  },
  {
    name: 'a history that is refused in its plainest form ends with words',
    answers: [refuses(400, 'messages: roles must alternate')],
    ends: ['error'],
    text: /history/,
  },
]

function equal(got: unknown, wanted: unknown): void {
  if (got !== wanted) throw new Error(`${String(got)} instead of ${String(wanted)}`)
}
