/**
 * A whole chat as a document, piece by piece: of a long one only the prompt that is being written
 * out is in memory.
 */
import { pauseWhenDue } from '@sandlot/shared/node/time-slices'
import { type SessionEvent, forReaders, sandlotEventOf, seqOf } from '@sandlot/shared/chat/events'
import { stringifyExactly } from '@sandlot/shared/base/exact-numbers'
import { type NameOf, entryAsMarkdown, branchNote } from '@sandlot/shared/transcript/as-markdown'
import type { Entry } from '@sandlot/shared/transcript/entries'
import { type Transcript, emptyTranscript, foldTranscript } from '@sandlot/shared/transcript/transcript'
import type { LogReads } from '@sandlot/storage/sessions/log'
import type { SessionRow } from '@sandlot/storage/tables/records'
import { withoutImageBytes } from './event-images.ts'
import { HtmlExport } from './export-html.ts'

/** Events that are read at once. */
const PAGE = 200

export const EXPORT_FORMATS = {
  markdown: { type: 'text/markdown; charset=utf-8', ending: 'md' },
  html: { type: 'text/html; charset=utf-8', ending: 'html' },
  json: { type: 'application/json', ending: 'json' },
} as const
export type ExportFormat = keyof typeof EXPORT_FORMATS

/** Markdown and HTML mark resent messages; JSON has every event. */
export async function* exportChat(
  log: LogReads,
  row: SessionRow,
  format: ExportFormat,
  nameOf: NameOf,
): AsyncGenerator<string> {
  if (format === 'json') return yield* asJson(log, row)
  const title = row.title ?? 'Chat'
  if (format === 'html') {
    const page = new HtmlExport(nameOf)
    yield page.head(title, `${nameOf(undefined)}, ${new Date(row.createdAt).toISOString().slice(0, 10)}`)
    for await (const { entry, note } of entriesOf(log, row.id)) yield page.entry(entry, note)
    return yield page.tail()
  }
  yield `# ${title}\n`
  for await (const { entry, note } of entriesOf(log, row.id))
    for (const text of [note, entryAsMarkdown(entry, nameOf)])
      if (text !== undefined) yield `\n${text.trimEnd()}\n`
}

async function* asJson(
  log: LogReads,
  { id, title, createdAt, updatedAt, cwd }: SessionRow,
): AsyncGenerator<string> {
  const about = JSON.stringify({ sessionId: id, title, createdAt, updatedAt, cwd })
  yield `${about.slice(0, -1)},"events":[`
  let separator = '\n'
  for await (const event of eventsOf(log, id)) {
    // Images are at their addresses, as on the page.
    const seen = withoutImageBytes(`/api/sessions/${encodeURIComponent(id)}`, forReaders(event))
    yield `${separator}${stringifyExactly(seen)}`
    separator = ',\n'
  }
  yield '\n]}\n'
}

/** From the top, of all branches in the order of the log; of each prompt once it has ended. */
async function* entriesOf(
  log: LogReads,
  id: string,
): AsyncGenerator<{ entry: Entry; note: string | undefined }> {
  const seen = new Set<string>()
  let transcript = emptyTranscript()
  for await (const event of eventsOf(log, id)) {
    transcript = foldTranscript(transcript, event)
    if (sandlotEventOf(event)?.type !== 'prompt_ended') continue
    yield* withNotes(transcript, seen)
    transcript = { ...transcript, entries: [] }
  }
  yield* withNotes(transcript, seen)
}

function withNotes({ entries, prompts }: Transcript, seen: Set<string>) {
  return entries.map((entry) => ({ entry, note: branchNote(entry, prompts, seen) }))
}

async function* eventsOf(log: LogReads, id: string): AsyncGenerator<SessionEvent> {
  for (let after = 0; ;) {
    const events = await log.read(id, after, PAGE)
    for (const event of events) {
      await pauseWhenDue()
      yield event
      after = seqOf(event) ?? after
    }
    if (events.length < PAGE) return
  }
}

/** A name that every file system accepts. */
export function exportName(title: string | null, format: ExportFormat): string {
  const words = title?.match(/[\p{L}\p{M}\p{N}_-]+/gu) ?? ['chat']
  return `${words.join(' ').slice(0, 80).trim()}.${EXPORT_FORMATS[format].ending}`
}
