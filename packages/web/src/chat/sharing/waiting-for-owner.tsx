import { PersonMark } from '../../ui/person-mark.tsx'
import { Revealed } from '../../ui/revealed.tsx'
import { useReading } from '../../state/reading.ts'

/** In place of the buttons of who may not answer. As high as they are. */
export function WaitingForOwner() {
  const { owner } = useReading()
  if (owner === null) return null
  return (
    <p
      data-testid="waiting-for-owner"
      className="flex min-h-8 items-center gap-2 text-sm text-muted pointer-coarse:min-h-11"
    >
      <PersonMark {...owner} className="size-5" />
      <span>
        Waiting for <Revealed text={owner.name} />
      </span>
    </p>
  )
}
