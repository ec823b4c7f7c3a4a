/**
 * Interruptions of a prompt: a Stop, a message, the death of the process. The history stays valid
 * and nothing runs twice.
 */
import { type SessionEvent, sandlotEventOf } from '@sandlot/shared/chat/events'
import { toolCalls } from '../support/fake-provider.ts'
import type { Script, Step } from './run-script.ts'
import {
  announced,
  broken,
  call,
  calls,
  done,
  echo,
  happens,
  outcomeOf,
  says,
  settles,
  speaks,
  startOf,
  times,
} from './words.ts'

const afterStop = (stopAt: Step['stopAt']): Step[] => [{ say: 'go', stopAt }, { say: 'and now?' }]
const afterCrash = (dieAt: Step['dieAt']): Step[] => [{ say: 'go', dieAt }, {}, { say: 'and now?' }]

export const INTERRUPTIONS: readonly Script[] = [
  // ── Stop ──
  {
    name: 'bug 1: Stop while reads run',
    answers: [calls(call('a', 'hang'), echo('b'), call('c', 'hang')), says('Yes.')],
    steps: afterStop(outcomeOf('b')),
    ends: ['cancelled', 'completed'],
    outcomes: ['failed cancelled', 'completed', 'failed cancelled'],
    roles: 'suatttau',
  },
  {
    name: 'bug 1: Stop before the second of two writes',
    answers: [calls(call('a', 'hang_write'), call('b', 'write', { text: 'x' })), says('Yes.')],
    steps: afterStop(startOf('a')),
    ends: ['cancelled', 'completed'],
    outcomes: ['failed cancelled', 'failed cancelled'],
    roles: 'suattau',
  },
  {
    name: 'bug 1: Stop when calls are announced',
    answers: [calls(echo('a'), call('b', 'write', { text: 'x' })), says('Yes.')],
    steps: afterStop(announced('a')),
    ends: ['cancelled', 'completed'],
    roles: 'suattau',
  },
  {
    name: 'bug 1: Stop between a batch and its next request',
    answers: [calls(echo('a')), says('Yes.')],
    steps: afterStop(happens('turn_ended')),
    ends: ['cancelled', 'completed'],
    roles: 'suatau',
  },
  {
    name: 'Stop after words and their calls: there is a sentence all the same',
    answers: [toolCalls([call('a', 'hang')], { text: 'I look.' }), says('Yes.')],
    steps: [{ say: 'go', stopAt: startOf('a') }],
    ends: ['cancelled'],
    text: /^(?!I look)/,
    check: ({ log }) => {
      const end = sandlotEventOf(log.at(-1) as SessionEvent)
      if (end?.type !== 'prompt_ended' || end.text === undefined) throw new Error('the end says nothing')
    },
  },
  {
    name: 'Stop while it speaks: what was shown stays',
    answers: [{ ...broken([{ content: 'I was about to' }]), after: 'hang' }, says('Yes.')],
    steps: afterStop(speaks),
    ends: ['cancelled', 'completed'],
    roles: 'suau',
    check: ({ requests }) => contains(requests[1]?.raw, 'I was about to'),
  },
  {
    name: 'Stop before anything was said',
    answers: [says('Yes.')],
    steps: afterStop(happens('prompt_started')),
    ends: ['cancelled', 'completed'],
    roles: 'suau',
  },
  // ── Queued messages ──
  {
    name: 'bug 27: steered behind the results',
    answers: [calls(echo('a')), done],
    steps: [{ say: 'go', meanwhile: { at: announced('a'), text: 'also this', as: 'steer' } }],
    ends: ['completed'],
    roles: 'suatu',
  },
  {
    name: 'bug 27: queued behind the prompt',
    answers: [calls(echo('a')), done, says('Yes.')],
    steps: [{ say: 'go', meanwhile: { at: announced('a'), text: 'then this', as: 'queue' } }],
    ends: ['completed', 'completed'],
    roles: 'suatau',
  },
  {
    name: 'bug 27: steered during the answer is the next prompt',
    answers: [says('A long answer.'), says('Yes.')],
    steps: [{ say: 'go', meanwhile: { at: speaks, text: 'also this', as: 'steer' } }],
    ends: ['completed', 'completed'],
    roles: 'suau',
  },
  {
    name: 'bug 27: kept over a Stop',
    answers: [calls(call('a', 'hang')), says('Yes.')],
    steps: [
      {
        say: 'go',
        meanwhile: { at: announced('a'), text: 'also this', as: 'queue' },
        stopAt: happens('message_queued'),
      },
      { say: 'and now?' },
    ],
    ends: ['cancelled', 'completed'],
    check: ({ requests }) => contains(requests[1]?.raw, 'also this'),
  },
  {
    name: 'bug 27: kept over a crash',
    answers: [calls(call('a', 'hang')), done, says('Yes.')],
    steps: [
      {
        say: 'go',
        meanwhile: { at: announced('a'), text: 'also this', as: 'steer' },
        dieAt: happens('message_queued'),
      },
      {},
    ],
    options: { toolTimeoutMs: 1_000 },
    ends: ['completed'],
    check: ({ requests }) => contains(requests[1]?.raw, 'also this'),
  },
  // ── Death ──
  {
    name: 'bug 28: death after a write, before its siblings',
    answers: [
      calls(call('a', 'write', { text: '1' }), call('b', 'write', { text: '2' })),
      done,
      says('Yes.'),
    ],
    steps: afterCrash(outcomeOf('a')),
    ends: ['completed', 'completed'],
    outcomes: ['completed', 'completed'],
    check: ({ ran }) => equal(ran['write'], 2),
  },
  {
    name: 'bug 28: death in the middle of a write is reported, not repeated',
    answers: [calls(call('a', 'hang_write')), done, says('Yes.')],
    steps: afterCrash(startOf('a')),
    ends: ['completed', 'completed'],
    outcomes: ['failed unknown_effect'],
    check: ({ ran }) => equal(ran['hang_write'] ?? 1, 1),
  },
  {
    name: 'bug 1: death when calls are announced',
    answers: [calls(echo('a'), echo('b')), done, says('Yes.')],
    steps: afterCrash(announced('a')),
    ends: ['completed', 'completed'],
    outcomes: ['completed', 'completed'],
    roles: 'suattau',
  },
  {
    name: 'death while it speaks: withdrawn and asked again',
    answers: [says('A first try.'), says('A second one.'), says('Yes.')],
    steps: afterCrash(speaks),
    ends: ['completed', 'completed'],
    roles: 'suau',
    check: ({ requests }) => equal(requests[2]?.raw.includes('first try'), false),
  },
  {
    name: 'death after the answer, before the end',
    answers: [says('The answer.'), says('Yes.')],
    steps: [{ say: 'go', dieAt: settles }, { say: 'and now?' }],
    ends: ['completed', 'completed'],
    roles: 'suau',
  },
  {
    name: 'poison prompt: given up at the fourth time',
    answers: [...times(4, () => says('A try.')), says('Yes.')],
    steps: [
      ...Array.from({ length: 4 }, (_, n) => ({ ...(n === 0 ? { say: 'go' } : {}), dieAt: speaks })),
      {},
      { say: 'and now?' },
    ],
    ends: ['error', 'completed'],
    roles: 'suau',
  },
  {
    name: 'poison prompt: a call that it dies in has its outcome when it is given up',
    // Both run at once, so that the second one has no outcome either, whichever starts first.
    answers: [calls(call('a', 'hang'), call('b', 'hang')), says('Yes.')],
    steps: [
      ...Array.from({ length: 4 }, (_, n) => ({ ...(n === 0 ? { say: 'go' } : {}), dieAt: startOf('a') })),
      {},
      { say: 'and now?' },
    ],
    ends: ['error', 'completed'],
    outcomes: ['failed interrupted', 'failed interrupted'],
  },
]

function contains(raw: string | undefined, words: string): void {
  if (raw?.includes(words) !== true) throw new Error(`${words} is not in ${raw}`)
}
function equal(got: unknown, wanted: unknown): void {
  if (got !== wanted) throw new Error(`${String(got)} instead of ${String(wanted)}`)
}
