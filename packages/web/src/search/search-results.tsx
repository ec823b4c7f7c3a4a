import { SEARCH_KINDS, type SearchKind } from '@sandlot/shared/desk/search'
import { useEffect, useMemo, useState } from 'react'
import { Alert } from '../ui/alert.tsx'
import { Button } from '../ui/button.tsx'
import { SearchHits } from './search-hits.tsx'
import { useSearch } from './use-search.ts'

/** Names of chats are found by the list itself. */
const EVERYTHING = SEARCH_KINDS.filter((kind) => kind !== 'title')
const WHAT: Record<string, { word: string; kinds: readonly SearchKind[] }> = {
  all: { word: 'Everything', kinds: EVERYTHING },
  said: { word: 'Messages', kinds: ['message', 'answer', 'comment'] },
  command: { word: 'Commands', kinds: ['command'] },
  output: { word: 'Outputs', kinds: ['output'] },
}
const DAY_MS = 86_400_000
const WHEN: Record<string, { word: string; days: number | undefined }> = {
  any: { word: 'Any time', days: undefined },
  day: { word: 'Last day', days: 1 },
  week: { word: 'Last 7 days', days: 7 },
  month: { word: 'Last 30 days', days: 30 },
}

/** What is found in the chats themselves. `onNothing`: whether that is nothing. */
export function SearchResults(props: {
  text: string
  onPick: () => void
  onNothing: (isNothing: boolean) => void
}) {
  const { text, onNothing } = props
  const [what, setWhat] = useState('all')
  const [when, setWhen] = useState('any')
  const [problem, setProblem] = useState<string | null>(null)
  const filters = useMemo(() => {
    const days = WHEN[when]?.days
    return { kinds: WHAT[what]?.kinds, since: days === undefined ? undefined : Date.now() - days * DAY_MS }
  }, [what, when])
  const { found, more } = useSearch(text, filters)
  const isFiltered = what !== 'all' || when !== 'any'
  const nothing = found.state === 'found' && found.items.length === 0
  useEffect(() => onNothing(nothing), [nothing, onNothing])
  if (found.state === 'failed') return <Alert>{found.problem}</Alert>
  if (found.state !== 'found' || (nothing && !isFiltered)) return null
  return (
    <section aria-label="In chats">
      <div className="flex items-center gap-1 px-2.5 pt-4 pb-1">
        <h2 className="min-w-0 flex-1 text-xs font-medium whitespace-nowrap text-faint">In chats</h2>
        <Choice label="What" options={WHAT} value={what} onChange={setWhat} />
        <Choice label="When" options={WHEN} value={when} onChange={setWhen} />
      </div>
      {nothing && (
        <p role="status" className="px-2.5 py-3 text-sm text-faint">
          Nothing of that kind.
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

function Choice(props: {
  label: string
  options: Record<string, { word: string }>
  value: string
  onChange: (value: string) => void
}) {
  return (
    <select
      aria-label={props.label}
      value={props.value}
      onChange={(event) => props.onChange(event.target.value)}
      className="h-7 max-w-24 min-w-0 cursor-pointer [field-sizing:content] rounded-md bg-transparent px-1 text-xs text-muted hover:bg-hover pointer-coarse:h-11"
    >
      {Object.entries(props.options).map(([value, { word }]) => (
        <option key={value} value={value}>
          {word}
        </option>
      ))}
    </select>
  )
}
