/**
 * Scripts for the crash campaign. A script is the model's answers, chosen by the content of the
 * request and not by a count, and a client that does the same again in every life: it sends its
 * messages under request ids, as a client that reconnects does.
 */
import { type SessionEvent, isOutcome, metaOf } from '@sandlot/shared/chat/events'
import { ANSWER_OPTION } from '@sandlot/shared/chat/question'
import { SUMMARY_REQUEST } from '../support/summary-request.ts'
import type { Session } from '../../src/session/session.ts'
import type { PromptOptions } from '../../src/session/intake.ts'
import { happened } from '../support/agent-fixture.ts'
import {
  type FakeAnswer,
  deltaChunk,
  errorAnswer,
  sse,
  textAnswer,
  toolCalls,
} from '../support/fake-provider.ts'

export interface CrashClient {
  session: Session
  /** Send a message under this request id; resolves when it is stored. */
  send(requestId: string, text: string, options?: PromptOptions): Promise<void>
  /** Resolves when the log is so. */
  until(wanted: (log: readonly SessionEvent[]) => boolean): Promise<void>
  /** Lets the tool `hold` end. */
  release(): void
}

/** The parts of a request that a script reads. */
export interface AskedFor {
  model?: string
  messages: readonly { role: string; content?: unknown }[]
}

export interface CrashScript {
  name: string
  mode: 'manual' | 'yolo'
  /** Commands run in a sandbox. */
  sandbox?: true
  /** There is an MCP server: over a pipe it dies with the agent, over HTTP it survives. */
  mcp?: 'pipe' | 'http'
  /** The sandbox takes so long, in milliseconds. */
  wakesIn?: number
  /** Its word that a command runs takes so long. */
  saysIn?: number
  /** There is another model for when this one cannot serve. */
  fallback?: true
  /** By the number of assistant messages in the request, how often it was asked with so many, and the request itself. */
  answer(assistants: number, asked: number, request: AskedFor): FakeAnswer
  /** The user's actions. The messages are sent, and all prompts awaited, in any case. */
  client(client: CrashClient): Promise<void>
  /** Lines that the journal must have exactly once. */
  once: string[]
  /** A Stop may come before them; twice they are there in no case. */
  atMostOnce?: string[]
  /** Reads may be made again after a crash. */
  atLeastOnce?: string[]
  /** The end of the last prompt. Default `completed`. */
  ends?: 'cancelled'
  /** Bytes of output by call. */
  outputs?: Record<string, string>
  /** Calls whose words differ between runs: they name a path, or depend on whether their tool still heard of a Stop. */
  variable?: string[]
  /** Calls whose outcome may say that nobody knows, when the life ended while they ran. */
  mayBeUnknown?: string[]
}

const call = (id: string, name: string, args: Record<string, unknown>) => ({ id, name, args })
const shell = (id: string, command: string) => call(id, 'run_shell_command', { command })
const LINES = Array.from({ length: 12 }, (_, n) => `line ${n + 1}\n`).join('')

/** Words, then calls, then words. */
const thenWords =
  (...first: FakeAnswer[]) =>
  (assistants: number): FakeAnswer =>
    first[assistants] ?? textAnswer('That is all of it.', { pieceLength: 6 })

/** A server's read-only tool is called again after a crash; one that writes may have been heard, so it never is. */
const callsServer = (mcp: 'pipe' | 'http'): CrashScript => ({
  name: `calls of an MCP server over ${mcp === 'pipe' ? 'a pipe' : 'HTTP'}`,
  mode: 'yolo',
  mcp,
  answer: thenWords(
    toolCalls([call('c_p', 'peek', { key: 'p' }), call('c_a', 'alter', { key: 'a' })]),
    toolCalls([call('c_b', 'alter', { key: 'b' }), call('c_q', 'peek', { key: 'q' })]),
  ),
  client: ({ send }) => send('r1', 'alter'),
  once: ['alter a', 'alter b'],
  atLeastOnce: ['peek p', 'peek q'],
  mayBeUnknown: ['c_a', 'c_b'],
})

export const SCRIPTS: readonly CrashScript[] = [
  {
    name: 'parallel reads',
    mode: 'manual',
    answer: thenWords(
      toolCalls(
        ['a', 'b', 'c'].map((key) => call(`c_${key}`, 'look', { key })),
        {
          text: 'I look at three things.',
          reasoning: 'Which?',
          pieceLength: 8,
        },
      ),
    ),
    client: ({ send }) => send('r1', 'look'),
    once: [],
    atLeastOnce: ['look a', 'look b', 'look c'],
  },
  {
    name: 'writes one after another',
    mode: 'yolo',
    answer: thenWords(
      toolCalls(['a', 'b'].map((key) => call(`c_${key}`, 'change', { key }))),
      toolCalls([call('c_c', 'change', { key: 'c' }), call('c_l', 'look', { key: 'l' })]),
    ),
    client: ({ send }) => send('r1', 'change'),
    once: ['change a', 'change b', 'change c'],
    atLeastOnce: ['look l'],
    mayBeUnknown: ['c_a', 'c_b', 'c_c'],
  },
  {
    name: 'a pending approval',
    mode: 'manual',
    answer: thenWords(toolCalls([call('c_a', 'change', { key: 'a' }), call('c_b', 'change', { key: 'b' })])),
    async client({ send, session, until }) {
      await send('r1', 'change')
      for (const [callId, optionId] of [
        ['c_a', 'allow_once'],
        ['c_b', 'reject_once'],
      ] as const) {
        await until((log) => happened(log, 'approval_asked').some(({ toolCallId }) => toolCallId === callId))
        await session.answer(callId, optionId, optionId === 'reject_once' ? { reason: 'not this one' } : {})
      }
    },
    once: ['change a'],
    mayBeUnknown: ['c_a'],
  },
  {
    name: 'a half-streamed answer',
    mode: 'yolo',
    answer: () =>
      textAnswer('An answer of some length, in many pieces.', { pieceLength: 4, reasoning: 'Let me think.' }),
    async client({ send }) {
      await send('r1', 'say')
    },
    once: [],
  },
  {
    name: 'steer, then queue',
    mode: 'yolo',
    answer: thenWords(
      toolCalls([call('c_h', 'hold', { key: 'h' })]),
      textAnswer('In blue then.'),
      textAnswer('And the second.'),
    ),
    async client({ send, until, release }) {
      await send('r1', 'go')
      await until((log) => log.some((event) => event.sessionUpdate === 'tool_call'))
      await send('r2', 'in blue, please')
      await send('r3', 'and then another', { whenBusy: 'queue' })
      release()
    },
    once: [],
  },
  {
    name: 'a stream that breaks and is asked again',
    mode: 'yolo',
    answer: (assistants, asked) =>
      assistants === 0 && asked === 1
        ? {
            steps: [sse(deltaChunk({ content: 'Half of' })), sse(deltaChunk({ content: ' it' }))],
            after: 'destroy',
          }
        : textAnswer('All of it.', { pieceLength: 4 }),
    client: ({ send }) => send('r1', 'say'),
    once: [],
  },
  {
    name: 'a question to the user',
    mode: 'manual',
    answer: thenWords(
      toolCalls([
        call('c_q', 'ask_user', { question: 'Which colour?', choices: ['red', 'blue'] }),
        call('c_l', 'look', { key: 'l' }),
      ]),
    ),
    async client({ send, session, until }) {
      await send('r1', 'paint')
      await until((log) => happened(log, 'approval_asked').length > 0)
      await session.answer('c_q', 'choice_2')
    },
    once: [],
    atLeastOnce: ['look l'],
  },
  {
    name: 'another model where the first cannot serve',
    mode: 'yolo',
    fallback: true,
    answer: (assistants, _asked, { model }) =>
      model === 'fake'
        ? errorAnswer(529, { error: { type: 'overloaded_error', message: 'Overloaded' } })
        : thenWords(toolCalls([call('c_c', 'change', { key: 'c' })]))(assistants),
    client: ({ send }) => send('r1', 'change'),
    once: ['change c'],
    mayBeUnknown: ['c_c'],
  },
  {
    name: 'a window that is full in the middle of a prompt',
    mode: 'yolo',
    // By what the request holds: it is refused until what it was made from is shorter.
    answer(assistants, _asked, { messages }) {
      const last = JSON.stringify(messages.at(-1))
      if (last.includes(SUMMARY_REQUEST.slice(0, 60))) return textAnswer('The summary.', { pieceLength: 4 })
      if (JSON.stringify(messages).includes('The summary.')) return textAnswer('That is all of it.')
      return assistants < 4
        ? toolCalls([call(`c_${assistants}`, 'look', { key: `${assistants} ${'words '.repeat(700)}` })])
        : errorAnswer(400, { error: { message: 'This model has a maximum context length of 4096 tokens' } })
    },
    client: ({ send }) => send('r1', 'go'),
    once: [],
  },
  {
    name: 'Stop while it holds',
    mode: 'yolo',
    answer: thenWords(toolCalls([call('c_h', 'hold', { key: 'h' })])),
    async client({ send, session, until }) {
      await send('r1', 'go')
      await until((log) => log.some((event) => event.sessionUpdate === 'tool_call_update'))
      await session.cancel()
    },
    once: [],
    ends: 'cancelled',
  },
  callsServer('pipe'),
  callsServer('http'),
  {
    name: 'an MCP server that asks in the middle of a call',
    mode: 'yolo',
    mcp: 'pipe',
    answer: thenWords(toolCalls([call('c_w', 'wonder', { key: 'w' })])),
    async client({ send, session, until }) {
      await send('r1', 'wonder')
      // One that was heard before a crash is not made again, so it asks nobody any more.
      await until((log) => log.some(isOutcome) || happened(log, 'approval_asked').length > 0)
      if (happened(session.log, 'approval_asked').length === 0) return
      await session.answer('c_w', ANSWER_OPTION, { content: { colour: 'blue' } })
    },
    once: ['wonder w in blue'],
    mayBeUnknown: ['c_w'],
  },
  {
    name: 'a command that runs on',
    mode: 'yolo',
    sandbox: true,
    answer: thenWords(
      toolCalls([
        shell('c_s', 'echo begun >> journal; for n in $(seq 1 12); do echo "line $n"; sleep 0.01; done'),
        shell('c_t', 'echo second >> journal; wc -l < journal'),
      ]),
    ),
    client: ({ send }) => send('r1', 'run'),
    once: ['begun', 'second'],
    outputs: { c_s: LINES, c_t: '2\n' },
  },
  {
    name: 'a command in a sandbox that takes its time',
    mode: 'yolo',
    sandbox: true,
    // Longer than the executor waits before it says so.
    wakesIn: 320,
    answer: thenWords(toolCalls([shell('c_s', 'echo begun >> journal; echo up')])),
    client: ({ send }) => send('r1', 'run'),
    once: ['begun'],
    outputs: { c_s: 'up\n' },
  },
  {
    name: 'files written and edited',
    mode: 'yolo',
    sandbox: true,
    answer: thenWords(
      toolCalls([
        call('c_w', 'write_file', { path: 'a.txt', content: 'one two\n' }),
        call('c_r', 'read_file', { path: 'a.txt' }),
        call('c_e', 'edit_file', { path: 'a.txt', old_text: 'two', new_text: 'three' }),
      ]),
      toolCalls([shell('c_c', 'cat a.txt')]),
    ),
    client: ({ send }) => send('r1', 'write'),
    once: [],
    mayBeUnknown: ['c_e'],
  },
  {
    name: 'a command in the background',
    mode: 'yolo',
    sandbox: true,
    answer: thenWords(
      toolCalls([
        call('c_b', 'run_shell_command', {
          command: 'echo begun >> journal; exec sleep 500',
          background: true,
        }),
      ]),
      toolCalls([shell('c_j', 'until [ -s journal ]; do sleep 0.01; done; cat journal')]),
      toolCalls([call('c_e', 'stop', { id: 'bg1' })]),
    ),
    client: ({ send }) => send('r1', 'start'),
    once: ['begun'],
    outputs: { c_j: 'begun\n' },
    variable: ['c_b', 'c_e'],
  },
  {
    name: 'Stop while a command runs',
    mode: 'yolo',
    sandbox: true,
    answer: thenWords(toolCalls([shell('c_s', 'echo begun >> journal; echo up; exec sleep 500')])),
    async client({ send, session, until }) {
      await send('r1', 'run')
      await until((log) => log.some(isOutcome) || showsOutput(session))
      await session.cancel()
    },
    once: ['begun'],
    ends: 'cancelled',
    variable: ['c_s'],
  },
  {
    name: 'Stop before the agent knows that the command runs',
    mode: 'yolo',
    sandbox: true,
    saysIn: 60,
    answer: thenWords(toolCalls([shell('c_s', 'echo begun >> journal; exec sleep 500')])),
    async client({ send, session, until }) {
      await send('r1', 'run')
      await until((log) => log.some((event) => event.sessionUpdate === 'tool_call_update'))
      await session.cancel()
    },
    once: [],
    atMostOnce: ['begun'],
    ends: 'cancelled',
    variable: ['c_s'],
  },
]

/** A call that runs has printed something. */
function showsOutput(session: Session): boolean {
  const { catchUp, close } = session.subscribe(session.seq)
  close()
  return catchUp.some((event) => metaOf(event).output !== undefined)
}
