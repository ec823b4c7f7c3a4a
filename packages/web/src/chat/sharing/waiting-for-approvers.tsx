import type { Author } from '@sandlot/shared/chat/shares'
import { PersonMark } from '../../ui/person-mark.tsx'
import { Revealed } from '../../ui/revealed.tsx'
import { useReading } from '../../state/reading.ts'

/** Names in full; more people than this are counted. */
const MOST_NAMED = 3

/** In place of the buttons of who may not answer. As high as they are. */
export function WaitingForApprovers() {
  const { owner, approvers, moreApprovers, snapshot } = useReading()
  if (owner === null) return null
  return (
    <p
      data-testid="waiting-for-approvers"
      className="flex min-h-8 items-center gap-2 text-sm text-muted pointer-coarse:min-h-11"
    >
      <PersonMark {...owner} className="size-5" />
      <span>
        {snapshot === true ? (
          'Not answered when this snapshot was made'
        ) : (
          <>
            Waiting for <Revealed text={anyOf([owner, ...approvers], moreApprovers)} />
          </>
        )}
      </span>
    </p>
  )
}

function anyOf(people: readonly Author[], more: number): string {
  const names = people.map(({ name }) => name)
  const others = names.length + more - MOST_NAMED
  const shown = others > 1 ? [...names.slice(0, MOST_NAMED), `${others} others`] : names
  return new Intl.ListFormat('en-GB', { type: 'disjunction' }).format(shown)
}
