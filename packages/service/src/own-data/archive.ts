/**
 * All that Sandlot keeps of one person as a zip file, made while it is sent: of a long chat a page
 * is in memory, of a file a piece.
 */
import { Readable } from 'node:stream'
import { finished } from 'node:stream/promises'
import type { Account } from '@sandlot/shared/account/api'
import { SandlotError, messageOf } from '@sandlot/shared/base/errors'
import { isReplayId } from '@sandlot/shared/chat/event-meta'
import { type SessionEvent, seqOf } from '@sandlot/shared/chat/events'
import { csvOf } from '@sandlot/shared/admin/csv'
import type { ServersView } from '@sandlot/shared/admin/mcp-servers'
import type { Instructions } from '@sandlot/shared/account/instructions'
import type { RuleList } from '@sandlot/shared/account/rules-api'
import type { SecretList } from '@sandlot/shared/account/secrets'
import type { AuditReads } from '@sandlot/storage/audit/audit'
import { DAY_MS } from '@sandlot/storage/usage/usage-sums'
import type { SessionReader } from '@sandlot/storage/sessions/store'
import type { SessionRow } from '@sandlot/storage/tables/records'
import { exportChat } from '../chat/chat-export.ts'
import { imagesIn } from '../chat/event-images.ts'
import { type FolderReader, type ZipFilling, addFolder, safeName } from './folder-zip.ts'

/** Chats, events or lines that are read at once. */
const PAGE = 100
const OUTPUT_PIECE_BYTES = 256 * 1024

/** The agent's data about this person, collected before the archive began. */
interface OfAgent {
  rules: RuleList
  secrets: SecretList
  servers: ServersView
  instructions: Instructions
  files: FolderReader
}

interface OwnData {
  account: Account
  /** Facts of the account that only the service has. */
  facts: Readonly<Record<string, unknown>>
  reader: SessionReader
  /** Both audit logs. */
  audit: readonly AuditReads[]
  /** Absent: of a guest, who has none. */
  agent: OfAgent | undefined
}

const README = `This is everything that Sandlot keeps of you.

account.json        your account, sign-ins, API keys (their names) and teams
chats/              each of your chats as JSON and as Markdown, with its images and outputs
workspace/          the files of your workspace
rules.json          what your agent may do without asking
secrets.json        the names of your secrets; their values never leave Sandlot
mcp-servers.json    MCP servers of your own
instructions.md     what you told your agent
projects.json       your projects
usage.csv           what you used up, by day and model
audit.jsonl         the lines of the audit log about you

What you wrote in chats of others is theirs, and not in here.
`

/** Fills the archive. Rejects where the databases cannot be read any more. */
export async function fillOwnData(into: ZipFilling, data: OwnData): Promise<void> {
  const { account, facts, reader, agent } = data
  const left: string[] = []
  const json = (name: string, value: unknown) =>
    addText(into, name, `${JSON.stringify(value, undefined, 2)}\n`)
  await addText(into, 'README.txt', README)
  await json('account.json', { ...account, ...facts })
  await addChats(into, reader, account)
  if (agent !== undefined) {
    await json('rules.json', agent.rules.rules)
    await json('secrets.json', agent.secrets.secrets)
    await json(
      'mcp-servers.json',
      agent.servers.servers.map((server) => ({ ...server, status: undefined })),
    )
    await addText(into, 'instructions.md', agent.instructions.text)
    await json('projects.json', await reader.chats.projects(account.id))
    await addText(into, 'usage.csv', await usageOf(reader, account.id))
  }
  await addText(into, 'audit.jsonl', auditOf(data.audit, account.id))
  if (agent !== undefined) await addWorkspace(into, agent.files, left)
  if (left.length > 0)
    await addText(into, '_not-in-this-zip.txt', `Not in this zip file:\n\n${left.join('\n')}\n`)
}

async function addChats(into: ZipFilling, reader: SessionReader, { id, name }: Account): Promise<void> {
  const used = new Set<string>()
  for await (const row of chatsOf(reader, id)) {
    if (into.signal.aborted) return
    const day = new Date(row.createdAt).toISOString().slice(0, 10)
    const title = safeName((row.title ?? 'chat').slice(0, 60)).trim() || 'chat'
    let folder = `chats/${day} ${title}`
    for (let n = 2; used.has(folder.toLowerCase()); n++) folder = `chats/${day} ${title} (${n})`
    used.add(folder.toLowerCase())
    const by = (author: { name: string } | undefined): string => author?.name ?? name
    await addText(into, `${folder}/chat.json`, exportChat(reader.log, row, 'json', by))
    await addText(into, `${folder}/chat.md`, exportChat(reader.log, row, 'markdown', by))
    for await (const event of eventsOf(reader, row.id))
      for (const [index, { mimeType, data }] of imagesIn(event).entries()) {
        const ending = safeName(mimeType.replace(/^image\//, ''))
        await addBytes(into, `${folder}/images/${seqOf(event)}-${index}.${ending}`, [
          Buffer.from(data, 'base64'),
        ])
      }
    for (const { callId, storedBytes } of await reader.outputs.list(row.id))
      if (storedBytes > 0 && !isReplayId(callId))
        await addBytes(into, `${folder}/outputs/${safeName(callId)}.txt`, outputOf(reader, row.id, callId))
  }
}

async function* chatsOf(reader: SessionReader, userId: string): AsyncGenerator<SessionRow> {
  let before: number | undefined
  for (;;) {
    const rows = await reader.sessions.list(userId, { before, limit: PAGE })
    yield* rows
    before = rows.at(-1)?.updatedAt
    if (rows.length < PAGE) return
  }
}

async function* eventsOf(reader: SessionReader, sessionId: string): AsyncGenerator<SessionEvent> {
  for (let after = 0; ;) {
    const events = await reader.log.read(sessionId, after, PAGE)
    yield* events
    const last = events.at(-1)
    if (last === undefined || events.length < PAGE) return
    after = seqOf(last) ?? after
  }
}

async function* outputOf(
  reader: SessionReader,
  sessionId: string,
  callId: string,
): AsyncGenerator<Uint8Array> {
  for (let from = 0; ;) {
    const piece = await reader.outputs.read(sessionId, callId, from, from + OUTPUT_PIECE_BYTES)
    if (piece.length === 0) return
    yield piece
    from += piece.length
  }
}

async function usageOf(reader: SessionReader, userId: string): Promise<string> {
  const to = Math.floor(Date.now() / DAY_MS) + 1
  const rows = await reader.usage.sums({ from: 0, to, userId }, ['day', 'model'])
  const head = [
    'day',
    'model',
    'answers',
    'calls',
    'input',
    'output',
    'cached',
    'reasoning',
    'dollars',
    'of unknown cost',
  ]
  return csvOf([
    head,
    ...rows.map(
      ({ day = 0, model = '', answers, calls, input, output, cached, reasoning, cost, unpriced }) => {
        const date = new Date(day * DAY_MS).toISOString().slice(0, 10)
        return [date, model, answers, calls, input, output, cached, reasoning, cost, unpriced]
      },
    ),
  ])
}

async function* auditOf(logs: readonly AuditReads[], about: string): AsyncGenerator<string> {
  for (const log of logs) {
    let behind: { at: number; seq: number } | undefined
    for (;;) {
      const lines = await log.page({ about, behind, limit: PAGE })
      for (const line of lines) yield `${JSON.stringify(line)}\n`
      behind = lines.at(-1)
      if (lines.length < PAGE) break
    }
  }
}

/** Without it where the sandbox cannot be started: the rest is worth having. */
async function addWorkspace(into: ZipFilling, files: FolderReader, left: string[]): Promise<void> {
  try {
    const first = await files.list('')
    await addFolder(into, files, { path: '', name: 'workspace', first })
  } catch (error) {
    if (!(error instanceof SandlotError)) throw error
    left.push(`The files of your workspace: ${messageOf(error)}`)
  }
}

function addText(into: ZipFilling, name: string, text: string | AsyncIterable<string>): Promise<void> {
  return addBytes(into, name, typeof text === 'string' ? [Buffer.from(text)] : buffersOf(text))
}

async function* buffersOf(texts: AsyncIterable<string>): AsyncGenerator<Uint8Array> {
  for await (const text of texts) yield Buffer.from(text)
}

/** Resolves when the last byte was taken. */
async function addBytes(
  { zip, signal }: ZipFilling,
  name: string,
  pieces: Iterable<Uint8Array> | AsyncIterable<Uint8Array>,
): Promise<void> {
  const bytes = Readable.from(pieces, { objectMode: false, signal })
  zip.addReadStream(bytes, name, { mtime: new Date() })
  await finished(bytes)
}
