/** The search field, hits in chats, and the filters on them. */
import { BY_AGENT, MAX_SEARCH_CHARS, SEARCH_KINDS, type SearchKind } from '@sandlot/shared/search/search'
import type { Author } from '@sandlot/shared/chat/shares'
import { Search, SlidersHorizontal } from 'lucide-react'
import { useEffect, useState } from 'react'
import { useChat, useChatState } from '../state/chat-context.ts'
import { cn } from '../lib/cn.ts'
import { useChatListState } from '../state/chat-list-state.ts'
import { Alert } from '../ui/alert.tsx'
import { Button } from '../ui/button.tsx'
import { SearchHits } from './search-hits.tsx'
import { type SearchFilters, useSearch } from './use-search.ts'

export function SearchBox({ wanted, onWanted }: { wanted: string; onWanted: (wanted: string) => void }) {
  return (
    <search className="relative px-2.5 pb-1">
      <Search
        className="pointer-events-none absolute top-2.5 left-5 size-4 text-faint pointer-coarse:top-3.5"
        aria-hidden
      />
      <input
        dir="auto"
        type="search"
        aria-label="Search your chats"
        placeholder="Search chats"
        value={wanted}
        maxLength={MAX_SEARCH_CHARS}
        autoComplete="off"
        onChange={(event) => onWanted(event.target.value)}
        onKeyDown={(event) => {
          if (event.key !== 'Escape') return
          // Not Stop: with nothing searched for, Escape leaves the field.
          event.preventDefault()
          if (wanted === '') return event.currentTarget.blur()
          // Nor the drawer’s end.
          event.stopPropagation()
          event.nativeEvent.stopImmediatePropagation()
          onWanted('')
        }}
        className="h-9 w-full rounded-lg bg-transparent pr-2.5 pl-9.5 text-sm placeholder:text-faint hover:bg-hover focus:bg-hover pointer-coarse:h-11"
      />
    </search>
  )
}

/** Search hits in chats. `onNothing`: called with whether there are none. */
export function SearchResults(props: {
  text: string
  onPick: () => void
  onNothing: (isNothing: boolean) => void
}) {
  const { text, onNothing } = props
  const [said, setSaid] = useState(NO_FILTERS)
  const [filters, setFilters] = useState(() => readFilters(NO_FILTERS, Date.now()))
  const [problem, setProblem] = useState<string | null>(null)
  const { found, more } = useSearch(text, filters)
  const nothing = found.state === 'found' && found.items.length === 0
  useEffect(() => onNothing(nothing), [nothing, onNothing])
  if (found.state === 'failed') return <Alert>{found.problem}</Alert>
  if (found.state !== 'found' || (nothing && !isFiltering(said))) return null
  return (
    <section aria-label="In chats">
      <SearchFilterBar
        said={said}
        authors={found.items.flatMap(({ by }) => by ?? [])}
        onChange={(next) => {
          setSaid(next)
          setFilters(readFilters(next, Date.now()))
        }}
      />
      {nothing && (
        <p role="status" className="px-2.5 py-3 text-sm text-faint">
          No results.
        </p>
      )}
      <SearchHits hits={found.items} onPick={props.onPick} />
      {problem !== null && <Alert>{problem}</Alert>}
      {found.next !== null && (
        <Button size="sm" variant="ghost" className="mt-2" onClick={() => void more().then(setProblem)}>
          Show more
        </Button>
      )}
    </section>
  )
}

/** Chosen filters; empty: any. */
interface SaidFilters {
  what: string
  when: string
  who: string
  project: string
  archived: string
  /** Days, as `2026-05-31`, of `when` “between”. */
  from: string
  until: string
}

const NO_FILTERS: SaidFilters = {
  what: '',
  when: '',
  who: '',
  project: '',
  archived: '',
  from: '',
  until: '',
}

/** Names of chats are found by the list itself. */
const EVERYTHING = SEARCH_KINDS.filter((kind) => kind !== 'title')
const WHAT: Record<string, { word: string; kinds: readonly SearchKind[] }> = {
  '': { word: 'Everything', kinds: EVERYTHING },
  said: { word: 'Messages', kinds: ['message', 'answer', 'comment'] },
  command: { word: 'Commands', kinds: ['command'] },
  output: { word: 'Outputs', kinds: ['output'] },
}
const BETWEEN = 'between'
const DAY_MS = 86_400_000
const WHEN: Record<string, { word: string; days?: number }> = {
  '': { word: 'Any time' },
  day: { word: 'Last day', days: 1 },
  week: { word: 'Last 7 days', days: 7 },
  month: { word: 'Last 30 days', days: 30 },
  [BETWEEN]: { word: 'Between…' },
}
const ARCHIVED: Record<string, string> = {
  '': 'Archived or not',
  false: 'Not archived',
  true: 'Archived',
}

function isFiltering(said: SaidFilters): boolean {
  return Object.values(said).some((value: string) => value !== '')
}

/** The search filters. Days are the reader’s own, from midnight to midnight. */
function readFilters(said: SaidFilters, now: number): SearchFilters {
  const { what, when, who, project, archived, from, until } = said
  const days = WHEN[when]?.days
  const midnight = (day: string): number | undefined =>
    when !== BETWEEN || day === '' ? undefined : new Date(`${day}T00:00`).getTime()
  const end = midnight(until)
  return {
    kinds: WHAT[what]?.kinds,
    since: days === undefined ? midnight(from) : now - days * DAY_MS,
    until: end === undefined ? undefined : end + DAY_MS - 1,
    who: who === '' ? undefined : who,
    project: project === '' ? undefined : project,
    archived: archived === '' ? undefined : archived === 'true',
  }
}

/** `authors`: of what was found, beside those whose chats are in the list. */
function SearchFilterBar(props: {
  said: SaidFilters
  authors: readonly Author[]
  onChange: (said: SaidFilters) => void
}) {
  const { said } = props
  const [open, setOpen] = useState(false)
  const set = (change: Partial<SaidFilters>) => props.onChange({ ...said, ...change })
  const choice = (label: string, name: keyof SaidFilters, options: Record<string, string>) => (
    <select
      aria-label={label}
      value={said[name]}
      onChange={(event) => set({ [name]: event.target.value })}
      className={cn(
        'h-7 max-w-full min-w-0 cursor-pointer [field-sizing:content] rounded-md bg-transparent px-1 text-xs hover:bg-hover pointer-coarse:h-11',
        said[name] === '' ? 'text-muted' : 'font-medium text-ink',
      )}
    >
      {Object.entries(options).map(([value, word]) => (
        <option key={value} value={value}>
          {word}
        </option>
      ))}
    </select>
  )
  return (
    <>
      <div className="flex items-center gap-1 px-2.5 pt-4 pb-1">
        <h2 className="min-w-0 flex-1 text-xs font-medium whitespace-nowrap text-faint">In chats</h2>
        <button
          type="button"
          aria-label="More filters"
          title="More filters"
          aria-expanded={open}
          onClick={() => setOpen(!open)}
          className="inline-flex size-7 shrink-0 items-center justify-center rounded-md text-muted hover:bg-hover aria-expanded:bg-active pointer-coarse:size-11"
        >
          <SlidersHorizontal className="size-3.5" aria-hidden />
        </button>
      </div>
      <div className="flex flex-wrap gap-x-2 px-1.5 pb-1">
        {choice('What', 'what', wordsOf(WHAT))}
        {choice('When', 'when', wordsOf(WHEN))}
      </div>
      {said.when === BETWEEN && (
        <div className="flex flex-wrap gap-x-3 gap-y-1 px-2.5 pb-2">
          <Day label="From" value={said.from} onChange={(from) => set({ from })} />
          <Day label="Until" value={said.until} onChange={(until) => set({ until })} />
        </div>
      )}
      {open && (
        <div className="flex flex-col items-start gap-1 px-1.5 pb-2">
          <Who said={said} authors={props.authors} choice={choice} />
          <InProject choice={choice} />
          {choice('Archive', 'archived', ARCHIVED)}
        </div>
      )}
    </>
  )
}

type Choice = (label: string, name: keyof SaidFilters, options: Record<string, string>) => React.JSX.Element

function Who({ authors, said, choice }: { authors: readonly Author[]; said: SaidFilters; choice: Choice }) {
  const { me } = useChat()
  const sessions = useChatState((state) => state.sessions)
  // A chosen author stays, also when none of their messages match.
  const [known, setKnown] = useState<ReadonlyMap<string, string>>(new Map())
  const owners = sessions?.flatMap(({ owner }) => owner ?? []) ?? []
  const all = [...authors, ...owners].filter(({ id }) => id !== me.id && !known.has(id))
  if (all.length > 0) setKnown(new Map([...known, ...all.map(({ id, name }) => [id, name] as const)]))
  const others = Object.fromEntries([...known].toSorted(([, a], [, b]) => (a < b ? -1 : 1)))
  const chosen = said.who === '' || said.who === me.id || said.who === BY_AGENT || said.who in others
  return choice('Who', 'who', {
    '': 'By anyone',
    [me.id]: 'By me',
    [BY_AGENT]: 'By the agent',
    ...others,
    ...(chosen ? {} : { [said.who]: said.who }),
  })
}

function InProject({ choice }: { choice: Choice }) {
  const projects = useChatListState((state) => state.projects)
  if (projects === null || projects.length === 0) return null
  const named = Object.fromEntries(projects.map(({ id, name }) => [id, `In ${name}`]))
  return choice('Project', 'project', { '': 'In any project or none', ...named })
}

function Day(props: { label: string; value: string; onChange: (day: string) => void }) {
  return (
    <label className="flex items-center gap-1.5 text-xs text-muted">
      {props.label}
      <input
        type="date"
        value={props.value}
        onChange={(event) => props.onChange(event.target.value)}
        className="h-7 rounded-md border border-line bg-raised px-1.5 text-xs text-ink pointer-coarse:h-11"
      />
    </label>
  )
}

function wordsOf(options: Record<string, { word: string }>): Record<string, string> {
  return Object.fromEntries(Object.entries(options).map(([value, { word }]) => [value, word]))
}
