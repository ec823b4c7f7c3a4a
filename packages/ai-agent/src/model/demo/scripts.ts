/** Intent → script: which calls, in which order, and what is said about their results. */
import { explainFailure, tourScript } from './tour.ts'
import type { Intent } from './intents.ts'
import { languageOf, programFor, runCommand, shellWord } from './programs.ts'
import {
  type Action,
  type DemoAnswer,
  type DemoCall,
  type DemoPrompt,
  type DoneCall,
  type Script,
  hasFailed,
  quoted,
  HOW_TO_CONFIGURE,
  LABEL,
  suggestions,
} from './script.ts'

/** The script for what a person wants. */
export function scriptFor(intent: Intent, prompt: DemoPrompt): Script {
  switch (intent.type) {
    case 'tour':
      return tourScript
    case 'greeting':
      return only(
        `Hello! ${LABEL} I follow simple rules, but what I do in your sandbox is real. Try one of these:\n\n${suggestions()}`,
      )
    case 'help':
      return only(
        `${LABEL} I follow simple rules, but what I do in your sandbox is real. These I understand:\n\n${suggestions()}\n\n${HOW_TO_CONFIGURE}`,
      )
    case 'thanks':
      return only('You are welcome. Say `demo` for a tour, or ask for something else.')
    case 'run':
      return steps([{ text: '', calls: [shell(intent.command)] }], ([ran]) => outputOf(ran, 'It'))
    case 'run_file':
      return runFile(intent.path ?? prompt.lastFile)
    case 'write':
      return writeThenRun(intent.path, intent.content, intent.run)
    case 'program':
      return program(intent.path, intent.asked, intent.run)
    case 'folder':
      return steps(
        [{ text: '', calls: [shell(`mkdir -p ${shellWord(intent.path)}`)] }],
        () => `The folder \`${intent.path}\` is there.`,
      )
    case 'read':
      return readFile(intent.path ?? prompt.lastFile)
    case 'edit':
      return edit(intent)
    case 'list':
      return steps(
        [{ text: 'I have a look.', calls: [call('list_directory', { path: intent.path })] }],
        ([listed]) => quoted(listed?.result ?? '', '', 60),
      )
    case 'glob':
      return steps([{ text: '', calls: [call('glob', { pattern: intent.pattern })] }], ([found]) =>
        quoted(found?.result ?? '', '', 60),
      )
    case 'search':
      return search(intent.pattern, intent.path)
    case 'echo':
      return steps(
        [{ text: '', calls: [call('echo', { text: intent.text })] }],
        ([echoed]) => echoed?.result ?? '',
      )
    case 'delete':
      return steps(
        [{ text: '', calls: [shell(`rm -r -- ${shellWord(intent.path)}`)] }],
        () => `\`${intent.path}\` is deleted.`,
      )
    case 'unknown':
      return only(
        `${LABEL} I only follow simple rules and did not understand that. These I can do:\n\n${suggestions()}\n\n${HOW_TO_CONFIGURE}`,
      )
  }
}

/** An answer in words alone. */
export function only(text: string): Script {
  return () => ({ text, calls: [] })
}

/**
 * Goes through the actions, one a turn, and stops at the first call that fails; `end` speaks when
 * all have worked.
 */
function steps(actions: readonly Action[], end: (calls: DoneCall[]) => string): Script {
  return ({ turns, first }): DemoAnswer => {
    const done = turns.flatMap((turn) => turn.calls)
    const failed = done.find(hasFailed)
    const next = actions[turns.length]
    if (failed === undefined && next !== undefined) return next
    const text = failed === undefined ? end(done) : explainFailure(failed)
    return { text: first ? `${text}\n\n*${LABEL.replaceAll('*', '')} ${HOW_TO_CONFIGURE}*` : text, calls: [] }
  }
}

function call(name: string, args: Record<string, unknown>): DemoCall {
  return { name, args }
}

/** Commands that say how long they take may take that long. */
function shell(command: string): DemoCall {
  const seconds = Math.max(0, ...[...command.matchAll(/\bsleep (\d+)/g)].map(([, number]) => Number(number)))
  const rounds = Number(/\bseq 1 (\d+)\); do\b/.exec(command)?.[1] ?? 1)
  const needed = (seconds * rounds + 10) * 1_000
  return call('run_shell_command', {
    command,
    ...(needed > 120_000 ? { timeout_ms: Math.min(300_000, needed) } : {}),
  })
}

function outputOf(ran: DoneCall | undefined, what: string): string {
  const output = ran?.result.trim() ?? ''
  if (output.includes('printed nothing')) return `${what} worked and printed nothing.`
  const cut = output.includes('left out here') ? ' That was long; the whole output is in the card above.' : ''
  return `${what} printed:\n\n${quoted(output)}${cut === '' ? '' : `\n\n${cut.trim()}`}`
}

function writeThenRun(path: string, content: string, run: boolean): Script {
  const command = runCommand(path)
  const write: Action = { text: `I write \`${path}\`.`, calls: [call('write_file', { path, content })] }
  if (!run) {
    const what =
      content === '' ? 'It is empty.' : `It says:\n\n${quoted(content, languageOf(path) ?? '', 40)}`
    return steps([write], () => `I created the file \`${path}\`. ${what}`)
  }
  if (command === undefined) {
    return steps(
      [write],
      () => `\`${path}\` is there, but its name does not tell me how to run it. I know .py, .js and .sh.`,
    )
  }
  return steps([write, { text: 'Now I run it.', calls: [shell(command)] }], (done) =>
    [`I created \`${path}\` and ran it.`, outputOf(done[1], 'It')].join(' '),
  )
}

function program(path: string, asked: string, run: boolean): Script {
  const language = languageOf(path)
  const code = language === undefined ? undefined : programFor(language, asked)
  if (code !== undefined) return writeThenRun(path, code, run)
  return only(
    `${LABEL} I know only a few programs by heart (primes, Fibonacci, FizzBuzz, squares, counting, the date, or printing a text in quotes), and I cannot write \`${path}\` as you describe it. You can give me its content in a code block. ${HOW_TO_CONFIGURE}`,
  )
}

function runFile(path: string | undefined): Script {
  const command = path === undefined ? undefined : runCommand(path)
  if (path === undefined)
    return only('I do not know which file you mean. Say its name, for example "run hello.py".')
  if (command === undefined)
    return only(
      `The name \`${path}\` does not tell me how to run it. I know .py, .js and .sh; or give me the whole command.`,
    )
  return steps([{ text: `I run \`${path}\`.`, calls: [shell(command)] }], ([ran]) =>
    outputOf(ran, `\`${path}\``),
  )
}

function readFile(path: string | undefined): Script {
  if (path === undefined)
    return only('I do not know which file you mean. Say its name, for example "read hello.py".')
  return steps(
    [{ text: '', calls: [call('read_file', { path })] }],
    ([file]) => `This is what \`${path}\` gave:\n\n${quoted(file?.result ?? '', languageOf(path) ?? '', 60)}`,
  )
}

function edit({ path, from, to }: { path: string; from: string; to: string }): Script {
  const args = { path, old_text: from, new_text: to, replace_all: true }
  return steps([{ text: '', calls: [call('edit_file', args)] }], ([edited]) => edited?.result ?? '')
}

function search(pattern: string, path: string | undefined): Script {
  // The tool takes a regular expression; people mean the text.
  const literal = pattern.replaceAll(/[\\^$.*+?()[\]{}|]/g, String.raw`\$&`)
  const args = { pattern: literal, path }
  return steps(
    [{ text: '', calls: [call('search_text', args)] }],
    ([found]) => `I searched for \`${pattern}\`:\n\n${quoted(found?.result ?? '', '', 60)}`,
  )
}
