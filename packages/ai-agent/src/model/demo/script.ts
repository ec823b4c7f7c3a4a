/** Input and output of the demo model's scripts, read from the messages alone. */
import type { ModelMessage } from '../model.ts'

export interface DemoCall {
  name: string
  args: Record<string, unknown>
}

/** A call with the text of its tool message. */
export interface DoneCall extends DemoCall {
  result: string
}

/** One answer of the demo model and what became of its calls. */
interface DoneTurn {
  calls: DoneCall[]
}

/** The prompt that is being answered. */
export interface DemoPrompt {
  text: string
  /** Turns so far. */
  turns: DoneTurn[]
  /** The first prompt of the session. */
  first: boolean
}

/** The next answer: the end of the prompt when it has no calls. */
export interface DemoAnswer {
  text: string
  calls: DemoCall[]
}

/** Decides the next answer to one prompt. */
export type Script = (prompt: DemoPrompt) => DemoAnswer

export function readPrompt(messages: readonly ModelMessage[]): DemoPrompt {
  const last = messages.findLastIndex((message) => message.role === 'user')
  const prompt = messages[last]
  const results = new Map(
    messages.flatMap((message) =>
      message.role === 'tool' ? [[message.callId, message.content] as const] : [],
    ),
  )
  const turnsOf = (part: readonly ModelMessage[]): DoneTurn[] =>
    part.flatMap((message) =>
      message.role === 'assistant'
        ? [
            {
              calls: message.calls.map(({ id, name, args }) => ({
                name,
                args: typeof args === 'object' && args !== null ? { ...args } : {},
                result: results.get(id) ?? '',
              })),
            },
          ]
        : [],
    )
  return {
    text: prompt?.role === 'user' ? prompt.content : '',
    turns: turnsOf(messages.slice(last + 1)),
    first: messages.filter((message) => message.role === 'user').length <= 1,
  }
}

/** The exit code that a command's result ends in; 0 when it names none. */
function exitCodeOf(call: DoneCall): number {
  const code = /\[exit code (\d+)\]\s*$/.exec(call.result)?.[1]
  return code === undefined ? 0 : Number(code)
}

/** True when a person (or the absence of one) kept the call from running. */
export function wasDenied(call: DoneCall): boolean {
  return /^(?:The user did not allow this call|Nobody answered the request to allow|This call needs the approval|The user cancelled this call)/.test(
    call.result,
  )
}

/** True when the call did not do what it was for. */
export function hasFailed(call: DoneCall): boolean {
  if (wasDenied(call)) return true
  if (call.name === 'run_shell_command')
    return exitCodeOf(call) !== 0 || /^\[(?:ended by \w+|[A-Z][^\]]*\.)\]$/.test(lastLine(call.result))
  if (call.name === 'write_file') return !call.result.startsWith('Wrote ')
  return false
}

function lastLine(text: string): string {
  return text.trimEnd().split('\n').at(-1) ?? ''
}

/** A text as a code block, cut to what is pleasant to read; the card above has the rest. */
export function quoted(text: string, maxLines = 24): string {
  const lines = text.trimEnd().split('\n')
  const shown = lines.length <= maxLines ? lines : [...lines.slice(0, maxLines - 1), '…']
  // A fence must be longer than any in the text.
  const longest = Math.max(2, ...[...text.matchAll(/`+/g)].map(([ticks]) => ticks.length))
  const fence = '`'.repeat(longest + 1)
  return `${fence}\n${shown.join('\n')}\n${fence}`
}

export const LABEL = '**I am the demo model: no AI model is configured.**'

/** Ends the first prompt of a session, and the answer to anything not understood. */
export const HOW_TO_CONFIGURE =
  'For a real model, an administrator adds one under Settings, Models; it answers from the next message on.'

/** The one program that the demo model can write, in Python. */
export function primesBelow(limit: number): string {
  return `def is_prime(n):\n    return n > 1 and all(n % d for d in range(2, int(n**0.5) + 1))\n\n\nprint([n for n in range(${limit}) if is_prime(n)])\n`
}

const REASONS: readonly [RegExp, string][] = [
  [/command not found/i, 'bash knows no command of that name.'],
  [/no such file or directory/i, 'the file or folder does not exist. Paths count from `/workspace`.'],
  [
    /could not resolve host|network is unreachable/i,
    'sandboxes have no network unless an administrator allows it.',
  ],
]

/** One or two sentences, with the message itself. */
export function explainFailure(call: DoneCall): string {
  if (wasDenied(call)) return call.result
  const code = exitCodeOf(call)
  const message = call.result.replace(/\s*\[exit code \d+\]\s*$/, '').trim()
  const reason = REASONS.find(([pattern]) => pattern.test(call.result))?.[1]
  const ended =
    code === 0 ? 'It did not work' : `It ended with exit code ${code}, and anything but 0 means failure`
  const because = reason === undefined ? '.' : `: ${reason}`
  return message === '' ? `${ended}${because}` : `${ended}${because}\n\n${quoted(message, 16)}`
}
