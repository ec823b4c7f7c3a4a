/** Why a command failed, in words, as far as simple rules can tell. */
import type { DoneCall } from './script.ts'
import { exitCodeOf, quoted, wasDenied } from './script.ts'

const REASONS: readonly [RegExp, string][] = [
  [
    /command not found/i,
    'bash knows no command of that name: it is misspelt or not installed in the sandbox.',
  ],
  [
    /no such file or directory|there is no (?:file|directory)/i,
    'the file or folder it names does not exist. Paths count from `/workspace`.',
  ],
  [
    /permission denied|operation not permitted/i,
    'the sandbox does not allow it: you are an ordinary user there, without root.',
  ],
  [
    /could not resolve host|temporary failure in name resolution|network is unreachable/i,
    'sandboxes have no network unless an administrator allows it.',
  ],
  [/no space left on device|disk quota/i, 'the disk of the sandbox is full.'],
  [/is a directory/i, 'it is a directory, and a file was wanted.'],
  [/syntaxerror|syntax error/i, 'the program has a mistake in its syntax; the message says in which line.'],
  [/traceback \(most recent call last\)/i, 'the program raised an exception; the last line says which.'],
  [/took too long|timed out/i, 'it ran longer than it may and was ended.'],
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
  return message === '' ? `${ended}${because}` : `${ended}${because}\n\n${quoted(message, '', 16)}`
}
