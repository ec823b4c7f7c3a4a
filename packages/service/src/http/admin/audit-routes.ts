/** The audit log of both processes, for administrators: read, searched, exported, checked. */
import { SandlotError } from '@sandlot/shared/base/errors'
import {
  type AuditAsk,
  type AuditEntry,
  type AuditPage,
  type AuditSource,
  auditAsk,
  auditSource,
  chatIdOf,
} from '@sandlot/shared/admin/audit'
import { csvOf } from '@sandlot/shared/admin/csv'
import type { AuditQuery, AuditReads } from '@sandlot/storage/audit/audit'
import type { ReaderOf } from '@sandlot/storage/shares/shares'
import { actorOf } from '../../auth/agent-user.ts'
import { readChains } from '../../operations/checks.ts'
import type { Ctx, Parts } from '../context.ts'
import type { Handlers } from '../actions.ts'

/** Lines of an export that are read at once. */
const EXPORT_PAGE = 500

type Logs = readonly (readonly [AuditSource, AuditReads])[]

/** A place between two lines. */
interface Cursor {
  at: number
  source: AuditSource
  seq: number
}

/** `/api/admin/audit` */
export function auditHandlers(parts: Parts) {
  const { accounts, sessions } = parts
  const logs = async (): Promise<Logs> => [
    ['agent', (await sessions.reader()).admin.audit],
    ['service', accounts.audit],
  ]
  return {
    listAudit: async (c) => {
      const ask = askOf(c)
      const behind = ask.cursor === undefined ? undefined : parseCursor(ask.cursor)
      const entries = await readMerged(await logs(), queryOf(ask), behind, ask.limit)
      const last = entries.length < ask.limit ? undefined : entries.at(-1)
      return c.json({
        entries,
        chats: await titlesOf(entries, sessions, c.var.caller.account),
        next: last === undefined ? null : `${last.at}-${last.source}-${last.seq}`,
      } satisfies AuditPage)
    },
    exportAudit: async (c) => {
      const ask = askOf(c)
      const format = c.req.query('format')
      if (format !== 'csv' && format !== 'jsonl')
        throw new SandlotError('bad_request', 'Say in which format: ?format=csv or ?format=jsonl.')
      const { who, text, what, from, to } = ask
      const after = { format, who, text, what, from, to }
      await accounts.audit.write({ ...actorOf(c.var.caller), what: 'audit_exported', after })
      const type = format === 'csv' ? 'text/csv; charset=utf-8' : 'application/jsonl; charset=utf-8'
      const day = new Date().toISOString().slice(0, 10)
      return c.body(streamOf(exported(await logs(), queryOf(ask), format)), 200, {
        'content-type': type,
        'content-disposition': `attachment; filename="sandlot-audit-${day}.${format}"`,
      })
    },
    checkAudit: async (c) => c.json(await readChains(parts)),
  } satisfies Partial<Handlers>
}

/** Titles of the chats that this reader sees. */
async function titlesOf(
  entries: readonly AuditEntry[],
  sessions: Parts['sessions'],
  reader: ReaderOf,
): Promise<AuditPage['chats']> {
  const ids = [...new Set(entries.flatMap((entry) => chatIdOf(entry) ?? []))]
  const seen = await Promise.all(ids.map((id) => sessions.find(reader, id)))
  return Object.fromEntries(seen.flatMap((one) => (one === undefined ? [] : [[one.row.id, one.row.title]])))
}

function askOf(c: Ctx): AuditAsk {
  const ask = auditAsk.safeParse(c.req.query())
  if (ask.success) return ask.data
  throw new SandlotError(
    'bad_request',
    'Search by who, text, what (kinds, separated by commas), from and to (milliseconds), with a limit of 1 to 200.',
  )
}

function queryOf({ who, text, what, from, to }: AuditAsk): Omit<AuditQuery, 'limit'> {
  const given = (value: string | undefined): string | undefined => value?.trim() || undefined
  const kinds = given(what)
    ?.split(',')
    .map((kind) => kind.trim())
  return { who: given(who), text: given(text), what: kinds, from, to }
}

function parseCursor(text: string): Cursor {
  const [, at, source, seq] = /^(\d{1,16})-([a-z]+)-(\d{1,16})$/.exec(text) ?? []
  const known = auditSource.safeParse(source)
  if (!known.success) throw new SandlotError('bad_request', 'This cursor is not one of ours.')
  return { at: Number(at), source: known.data, seq: Number(seq) }
}

/** The newest first; of one time by process, then the larger number. */
async function readMerged(
  logs: Logs,
  query: Omit<AuditQuery, 'limit'>,
  cursor: Cursor | undefined,
  limit: number,
): Promise<AuditEntry[]> {
  const pages = await Promise.all(
    logs.map(([source, log]) => log.page({ ...query, limit, behind: cursor && behindIn(source, cursor) })),
  )
  return pages.flat().toSorted(inOrder).slice(0, limit)
}

/** The position after the cursor in the lines of this process. */
function behindIn(source: AuditSource, { at, source: last, seq }: Cursor): { at: number; seq: number } {
  if (source === last) return { at, seq }
  return { at, seq: source < last ? 0 : Number.MAX_SAFE_INTEGER }
}

function inOrder(a: AuditEntry, b: AuditEntry): number {
  return b.at - a.at || a.source.localeCompare(b.source) || b.seq - a.seq
}

async function* exported(
  logs: Logs,
  query: Omit<AuditQuery, 'limit'>,
  format: 'csv' | 'jsonl',
): AsyncGenerator<string> {
  // A spreadsheet reads UTF-8 only with this mark.
  if (format === 'csv') yield `\u{FEFF}${csvOf([CSV_HEADER])}`
  let cursor: Cursor | undefined
  for (;;) {
    const entries: AuditEntry[] = await readMerged(logs, query, cursor, EXPORT_PAGE)
    if (entries.length > 0)
      yield format === 'csv'
        ? csvOf(entries.map(cellsOf))
        : entries.map((one) => `${JSON.stringify(one)}\n`).join('')
    if (entries.length < EXPORT_PAGE) return
    cursor = entries.at(-1)
  }
}

const CSV_HEADER =
  'time,process,number,who,who id,e-mail,address,key,sign-in,what,whom,whom id,count,before,after,hash'.split(
    ',',
  )

function cellsOf({ at, source, seq, who, from, what, whom, count, before, after, hash }: AuditEntry) {
  const json = (facts: AuditEntry['before']): string | null => (facts === null ? null : JSON.stringify(facts))
  const first = [new Date(at).toISOString(), source, seq, who.name, who.id, who.email]
  const then = [from.address, from.key, from.signIn, what, whom.name, whom.id, count]
  return [...first, ...then, json(before), json(after), hash]
}

/** Read at the pace of the client. */
function streamOf(texts: AsyncGenerator<string>): ReadableStream<Uint8Array> {
  const encoder = new TextEncoder()
  return new ReadableStream<Uint8Array>(
    {
      async pull(controller) {
        const { done, value } = await texts.next()
        if (done === true) controller.close()
        else controller.enqueue(encoder.encode(value))
      },
      async cancel() {
        await texts.return(undefined)
      },
    },
    new CountQueuingStrategy({ highWaterMark: 0 }),
  )
}
