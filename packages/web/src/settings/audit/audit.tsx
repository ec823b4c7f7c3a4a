/** The audit log for administrators: search, export, and a check that it is complete. */
import {
  type AuditChains,
  type AuditEntry,
  type AuditPage,
  auditPage,
  type AuditSource,
  chatIdOf,
} from '@sandlot/shared/admin/audit'
import { CircleAlert, CircleCheck, Download } from 'lucide-react'
import { useEffect, useState } from 'react'
import { Link } from 'wouter'
import { useResource } from '../../state/use-resource.ts'
import { formatCount } from '../../lib/format.ts'
import { call, urlOf } from '../../net/call.ts'
import { Alert } from '../../ui/alert.tsx'
import { Button } from '../../ui/button.tsx'
import { Field } from '../../ui/field.tsx'
import { Spinner } from '../../ui/spinner.tsx'
import { Part } from '../part.tsx'
import { Choice } from '../people/setting-fields.tsx'
import { useAttempt } from '../../lib/use-attempt.ts'
import { AUDIT_WORDS, auditWord, changedFacts, fromWords, whomWords } from './audit-words.ts'

interface AuditFilter {
  who: string
  text: string
  /** A kind; empty: all. */
  what: string
  /** Days as `2026-11-27`, of this browser's clock; empty: no end. */
  from: string
  to: string
}

const ALL: AuditFilter = { who: '', text: '', what: '', from: '', to: '' }
const LINK =
  'inline-flex h-10 items-center gap-2 rounded-lg border border-line-strong bg-raised px-3.5 text-sm font-medium shadow-1 hover:bg-hover pointer-coarse:h-11'

/** Letters are typed faster than lines are found. */
const PAUSE_MS = 250

async function fetchPage(filter: AuditFilter, cursor?: string, signal?: AbortSignal): Promise<AuditPage> {
  return auditPage.parse(await call('listAudit', { query: { ...queryOf(filter), cursor }, signal }))
}

/** Empty fields are left out. */
function queryOf({ who, text, what, from, to }: AuditFilter) {
  return {
    who: who.trim() || undefined,
    text: text.trim() || undefined,
    what: what.trim() || undefined,
    from: from === '' ? undefined : new Date(`${from}T00:00:00`).getTime(),
    // The whole last day.
    to: to === '' ? undefined : new Date(`${to}T23:59:59.999`).getTime(),
  }
}

export function Audit() {
  const [filter, setFilter] = useState(ALL)
  const [asked, setAsked] = useState(ALL)
  useEffect(() => {
    const timer = setTimeout(() => setAsked(filter), PAUSE_MS)
    return () => clearTimeout(timer)
  }, [filter])
  const {
    data: page,
    problem,
    busy,
    change,
  } = useResource(JSON.stringify(asked), (signal) => fetchPage(asked, undefined, signal), { keep: true })
  const more = (cursor: string) =>
    change(async () => {
      const next = await fetchPage(asked, cursor)
      const entries = [...(page?.entries ?? []), ...next.entries]
      return { entries, chats: { ...page?.chats, ...next.chats }, next: next.next }
    })
  return (
    <>
      <Filter filter={filter} onChange={setFilter} />
      <div className="-mt-4 flex flex-wrap gap-2">
        <a
          href={urlOf('exportAudit', { query: { ...queryOf(asked), format: 'csv' } })}
          download
          className={LINK}
        >
          <Download className="size-4" aria-hidden /> CSV
        </a>
        <a
          href={urlOf('exportAudit', { query: { ...queryOf(asked), format: 'jsonl' } })}
          download
          className={LINK}
        >
          <Download className="size-4" aria-hidden /> JSON lines
        </a>
      </div>
      {problem !== null && <Alert>{problem}</Alert>}
      {page === null ? (
        problem === null && <Spinner />
      ) : page.entries.length === 0 ? (
        <p className="text-sm text-muted">No matching entries.</p>
      ) : (
        <ol aria-label="Lines" className="-mt-4 divide-y divide-line rounded-lg border border-line">
          {page.entries.map((entry) => (
            <Line key={`${entry.source}-${entry.seq}`} entry={entry} chats={page.chats} />
          ))}
        </ol>
      )}
      {page !== null && page.next !== null && (
        <Button className="self-center" disabled={busy} onClick={() => void more(page.next ?? '')}>
          {busy && <Spinner />} Older lines
        </Button>
      )}
      <Chains />
    </>
  )
}

function Filter(props: { filter: AuditFilter; onChange: (filter: AuditFilter) => void }) {
  const { filter, onChange } = props
  const kinds = [['', 'Everything'], ...Object.entries(AUDIT_WORDS)] as [string, string][]
  const field = (name: 'who' | 'text' | 'from' | 'to', label: string, type: string, placeholder?: string) => (
    <Field
      label={label}
      type={type}
      value={filter[name]}
      placeholder={placeholder}
      autoComplete="off"
      onChange={({ target }) => onChange({ ...filter, [name]: target.value })}
    />
  )
  return (
    <form
      aria-label="Search"
      onSubmit={(event) => event.preventDefault()}
      className="grid gap-3 sm:grid-cols-2"
    >
      {field('who', 'Who', 'search', 'A name or an e-mail address')}
      {field('text', 'Anywhere in the line', 'search', 'A name, an address, a tool')}
      <div className="flex flex-col gap-1.5">
        <span className="text-sm font-medium" aria-hidden>
          What
        </span>
        <Choice
          label="What"
          value={filter.what}
          choices={kinds}
          onChange={(what) => onChange({ ...filter, what })}
        />
      </div>
      <div className="grid grid-cols-2 gap-3">
        {field('from', 'From', 'date')}
        {field('to', 'To', 'date')}
      </div>
    </form>
  )
}

function Line(props: { entry: AuditEntry; chats: AuditPage['chats'] }) {
  const { entry, chats } = props
  const { at, who, whom, what, count } = entry
  const chatId = chatIdOf(entry)
  const title = chatId === undefined ? undefined : chats[chatId]
  const facts = changedFacts(entry)
  const from = fromWords(entry)
  return (
    <li className="px-3 py-2.5 text-sm">
      <div className="flex flex-wrap items-baseline gap-x-2">
        <span className="font-medium [overflow-wrap:anywhere]">{who.name}</span>
        <span>
          {auditWord(what)}
          {count > 1 && `, ${count.toLocaleString('en')} times`}
        </span>
        <span className="[overflow-wrap:anywhere] text-muted">
          {title === undefined ? (
            whomWords(entry)
          ) : (
            <>
              {whom.name !== null && `${whom.name} in `}
              <Link
                href={`/s/${chatId}`}
                className="inline-flex items-center text-accent underline underline-offset-2 pointer-coarse:h-11"
              >
                {title ?? 'New chat'}
              </Link>
            </>
          )}
        </span>
        <time
          dateTime={new Date(at).toISOString()}
          className="ml-auto text-xs whitespace-nowrap text-muted max-sm:ml-0 max-sm:w-full"
        >
          {new Date(at).toLocaleString('en-GB', { dateStyle: 'medium', timeStyle: 'medium' })}
        </time>
      </div>
      <p className="text-xs text-muted [overflow-wrap:anywhere]">
        {[who.email, from, `${SOURCES[entry.source]} ${entry.seq}`].filter(Boolean).join(' · ')}
      </p>
      {facts.length > 0 && (
        <details className="mt-1 text-xs">
          <summary className="w-fit cursor-pointer rounded text-muted hover:text-ink pointer-coarse:py-3.5">
            {entry.before !== null ? 'Before and after' : 'Details'}
          </summary>
          <dl className="mt-1 grid grid-cols-[auto_1fr] gap-x-3 gap-y-1 font-mono">
            {facts.map(({ name, before, after }) => (
              <Fact key={name} name={name} before={before} after={after} />
            ))}
          </dl>
        </details>
      )}
    </li>
  )
}

function Fact(props: { name: string; before: string | undefined; after: string | undefined }) {
  const { name, before, after } = props
  return (
    <>
      <dt className="text-muted">{name}</dt>
      <dd className="[overflow-wrap:anywhere]">
        {before !== undefined && <del className="text-muted">{before}</del>}
        {before !== undefined && after !== undefined && ' → '}
        {after}
      </dd>
    </>
  )
}

const SOURCES: Record<AuditSource, string> = { agent: 'Agent', service: 'Service' }

/** Reads every line, so only when it is asked for. */
function Chains() {
  const [state, setState] = useState<AuditChains | null>(null)
  const { busy, problem, attempt } = useAttempt()
  return (
    <Part
      title="Integrity"
      text="Each entry contains a hash of the one before, so edits, removals and insertions are detected. Note the latest hashes elsewhere to detect a full rewrite."
    >
      {problem !== null && <Alert>{problem}</Alert>}
      <div aria-live="polite" className="flex flex-col gap-3">
        {state?.chains.map(({ source, lines, anchor, head, problems, problemCount }) => (
          <div key={source} className="rounded-lg border border-line p-3 text-sm">
            <p className="flex items-center gap-2 font-medium">
              {problemCount === 0 ? (
                <CircleCheck className="size-4 shrink-0 text-well" aria-hidden />
              ) : (
                <CircleAlert className="size-4 shrink-0 text-failed" aria-hidden />
              )}
              {SOURCES[source]}:{' '}
              {problemCount === 0
                ? `all ${formatCount(lines, 'line')} intact.`
                : `${formatCount(problemCount, 'line')} of ${lines.toLocaleString('en')} ${problemCount === 1 ? 'was' : 'were'} tampered with.`}
            </p>
            {problems.length > 0 && (
              <ul className="mt-1 list-disc pl-6">
                {problems.map((one) => (
                  <li key={one}>{one}</li>
                ))}
              </ul>
            )}
            <p className="mt-1 text-xs text-muted [overflow-wrap:anywhere]">
              Last line {head.seq}, hash <code>{head.hash}</code>
              {anchor.seq > 0 && `; retention has removed the lines up to ${anchor.seq}.`}
            </p>
          </div>
        ))}
      </div>
      <Button
        className="self-start"
        disabled={busy}
        onClick={() => void attempt(async () => setState(await call('checkAudit')))}
      >
        {busy && <Spinner />} Check every line
      </Button>
    </Part>
  )
}
