/** A conversation as a Markdown document: for a report, a page of notes, another program. */
import { cutWords } from '@sandlot/shared/transcript/cause-words'
import { noteWords } from '@sandlot/shared/transcript/cause-words'
import type { CallEntry, Entry } from '@sandlot/shared/transcript/entries'
import { type Transcript, promptOf } from '@sandlot/shared/transcript/transcript'
import type { Author } from '@sandlot/shared/team/shares'
import { changedWords } from '../../changes/change-words.ts'
import { shownArguments } from '../calls/call-arguments.ts'
import { statusWord } from '../calls/call-words.ts'
import { endLines } from './end-words.ts'

const TURNING = '*What follows was said anew, from an earlier place of this chat.*'

/** A person as the document names them; undefined: the chat says nothing of who it was. */
type NameOf = (author: Author | undefined) => string

/**
 * Everything but thoughts, of all branches in the order in which it was said. Outputs as the model
 * read them; images are named only.
 */
export function asMarkdown(
  title: string,
  { entries, prompts }: Pick<Transcript, 'entries' | 'prompts'>,
  nameOf: NameOf,
): string {
  const turnings = new Set(
    prompts.flatMap(({ id, follows }, at) => (follows === (prompts[at - 1]?.id ?? null) ? [] : [id])),
  )
  const parts = entries.flatMap((entry) => {
    const prompt = promptOf(entry)
    const turns = prompt !== undefined && turnings.delete(prompt)
    return [...(turns ? [TURNING] : []), partOf(entry, nameOf) ?? []].flat()
  })
  return [`# ${title}`, ...parts].map((part) => part.trimEnd()).join('\n\n') + '\n'
}

function partOf(entry: Entry, nameOf: NameOf): string | undefined {
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
    ...(output === '' ? [] : [fenced(output)]),
  ].join('\n\n')
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

/** With more backticks than the text has in a row, so that it cannot end the block. */
function fenced(text: string, language = ''): string {
  const longest = Math.max(0, ...[...text.matchAll(/`+/g)].map(([run]) => run.length))
  const fence = '`'.repeat(Math.max(3, longest + 1))
  return `${fence}${language}\n${text.trimEnd()}\n${fence}`
}
