import { useEffect, useState } from 'react'
import { Alert } from '../ui/alert.tsx'
import { Button } from '../ui/button.tsx'
import { SearchHits } from './search-hits.tsx'
import { NO_FILTERS, SearchFilterBar, isFiltering, readFilters } from './search-filters.tsx'
import { useSearch } from './use-search.ts'

/** What is found in the chats themselves. `onNothing`: whether that is nothing. */
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
