/**
 * Decisions of the demo model, and their inputs. Everything comes from the messages, so a restart
 * changes nothing.
 */
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
  /** What has been done for it so far. */
  turns: DoneTurn[]
  /** The first prompt of the session. */
  first: boolean
  /** The file that was written last, in this prompt or before. */
  lastFile: string | undefined
}

/** The next answer: the end of the prompt when it has no calls. */
export interface DemoAnswer {
  text: string
  calls: DemoCall[]
}

/** Decides the next answer to one prompt. */
export type Script = (prompt: DemoPrompt) => DemoAnswer

/** One step of a script that goes through a fixed list. */
export interface Action {
  text: string
  calls: DemoCall[]
}

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
  const written = turnsOf(messages)
    .flatMap((turn) => turn.calls)
    .findLast((call) => call.name === 'write_file' && !hasFailed(call))
  const path = written?.args['path']
  return {
    text: prompt?.role === 'user' ? prompt.content : '',
    turns: turnsOf(messages.slice(last + 1)),
    first: messages.filter((message) => message.role === 'user').length <= 1,
    lastFile: typeof path === 'string' ? path : undefined,
  }
}

/** The exit code that a command's result ends in; 0 when it names none. */
export function exitCodeOf(call: DoneCall): number {
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
export function quoted(text: string, language = '', maxLines = 24): string {
  const lines = text.trimEnd().split('\n')
  const shown = lines.length <= maxLines ? lines : [...lines.slice(0, maxLines - 1), '…']
  // A fence must be longer than any in the text.
  const longest = Math.max(2, ...[...text.matchAll(/`+/g)].map(([ticks]) => ticks.length))
  const fence = '`'.repeat(longest + 1)
  return `${fence}${language}\n${shown.join('\n')}\n${fence}`
}

export const LABEL = '**I am the demo model: no AI model is configured.**'

const SUGGESTIONS = [
  '`demo`: a short tour of everything',
  '`make a file hello.py that prints the primes below 50 and run it`',
  '`create a file called test.txt with content "hello"`',
  '`what is in my workspace?`',
  '`read hello.py`',
  '`replace 50 with 100 in hello.py`',
  '`search for TODO`',
  '`run df -h`, or any other command',
]

/** Sent once in a session, and whenever the demo model does not understand. */
export const HOW_TO_CONFIGURE =
  'For a real model, an administrator adds one under Settings, Models; it answers from the next message on.'

export function suggestions(): string {
  return SUGGESTIONS.map((line) => `- ${line}`).join('\n')
}
