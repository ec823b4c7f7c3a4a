/**
 * A conversation as Markdown: for a report, notes, another program. Includes everything on the
 * screen except thoughts; outputs as read by the model, images by name only.
 */
import { cutWords } from './cause-words.ts'
import { noteWords } from './cause-words.ts'
import type { CallEntry, Entry } from './entries.ts'
import type { Author } from '../chat/shares.ts'
import { type Transcript, promptOf } from './transcript.ts'
import { changedWords } from './change-words.ts'
import { shownArguments } from './call-arguments.ts'
import { statusWord } from './call-words.ts'
import { endLines } from './end-words.ts'

const BRANCH_NOTE = '*The following continues from an earlier message of this chat.*'
/** Characters of one output; the rest is in the chat. */
const MAX_OUTPUT = 20_000

/** A user's name in the document; undefined: the chat does not know the author. */
export type NameOf = (author: Author | undefined) => string

/**
 * Set if this entry starts a prompt that follows an earlier one than its predecessor. `seen`:
 * prompts that were checked before.
 */
export function branchNote(
  entry: Entry,
  prompts: Transcript['prompts'],
  seen: Set<string>,
): string | undefined {
  const prompt = promptOf(entry)
  if (prompt === undefined || seen.has(prompt)) return undefined
  seen.add(prompt)
  const at = prompts.findIndex(({ id }) => id === prompt)
  const turns = at >= 0 && prompts[at]?.follows !== (prompts[at - 1]?.id ?? null)
  return turns ? BRANCH_NOTE : undefined
}

/** One entry; undefined: it has no text. */
export function entryAsMarkdown(entry: Entry, nameOf: NameOf): string | undefined {
  switch (entry.type) {
    case 'message':
      return messagePart(entry, nameOf)
    case 'call':
      return callPart(entry)
    case 'comment':
      return quoted(`**${nameOf(entry.author)}** (comment, not read by the agent)\n\n${entry.text}`)
    case 'note':
      return `*${noteWords(entry.event)}*`
    case 'changes':
      return changesPart(entry)
    case 'end': {
      if (entry.reason === 'completed') return entry.text === undefined ? undefined : `*${entry.text}*`
      return `*${endLines(entry.reason, entry.text, entry.cause).join(': ')}*`
    }
  }
}

function messagePart(entry: Extract<Entry, { type: 'message' }>, nameOf: NameOf): string | undefined {
  if (entry.role === 'thought') return undefined
  const images = (entry.images ?? []).map((_, index) => `*Image ${index + 1}*`)
  const words = [...images, entry.text].filter((text) => text !== '').join('\n\n')
  if (entry.role === 'user') return `## ${nameOf(entry.author)}\n\n${words}`
  const cut = entry.cut === undefined ? '' : `\n\n*Cut off here. ${cutWords(entry.cut)}.*`
  return `## Sandlot\n\n${words}${cut}`
}

function callPart(call: CallEntry): string {
  const { command, fields, raw } = shownArguments(call.rawInput)
  const said = [
    ...(command === undefined ? [] : [fenced(command, 'sh')]),
    ...(raw === undefined ? [] : [fenced(raw)]),
    ...fields.map(({ name, text, long }) => (long ? `${name}:\n\n${fenced(text)}` : `${name}: \`${text}\``)),
  ]
  const output = call.rawOutput?.forModel ?? ''
  return [
    `**${call.title}** (${statusWord(call)})`,
    ...said,
    ...(output === '' ? [] : [fenced(output.slice(0, MAX_OUTPUT)), ...cutOutput(output)]),
  ].join('\n\n')
}

function cutOutput(output: string): string[] {
  const left = output.length - MAX_OUTPUT
  return left <= 0 ? [] : [`*${left.toLocaleString('en')} more characters of this output are in the chat.*`]
}

function changesPart(changes: Extract<Entry, { type: 'changes' }>): string {
  const named = changes.files.map(({ path, kind, lines }) => {
    const counts = lines === undefined ? '' : `, +${lines.added} −${lines.removed}`
    return `- \`${path}\` (${kind}${counts})`
  })
  const more = changes.more === 0 ? [] : [`- and ${changes.more} more`]
  return [`*${changedWords(changes)}*`, '', ...named, ...more].join('\n')
}

function quoted(text: string): string {
  return text
    .split('\n')
    .map((line) => `> ${line}`.trimEnd())
    .join('\n')
}

/** Uses more backticks than any run in the text, so that the text cannot end the block. */
function fenced(text: string, language = ''): string {
  const longest = Math.max(0, ...[...text.matchAll(/`+/g)].map(([run]) => run.length))
  const fence = '`'.repeat(Math.max(3, longest + 1))
  return `${fence}${language}\n${text.trimEnd()}\n${fence}`
}
