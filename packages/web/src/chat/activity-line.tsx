import { type Activity, activityOf } from '@sandlot/shared/activity'
import type { Transcript } from '@sandlot/shared/transcript'
import { formatDuration } from '../lib/format.ts'
import { useNow } from '../lib/use-now.ts'

function wordsOf(activity: Activity): string | null {
  switch (activity.doing) {
    case 'thinking':
      return 'Thinking…'
    case 'reading_results':
      return 'Reading the results…'
    // The text that grows, the cards that run and the questions that wait speak for themselves.
    case 'writing':
    case 'running':
    case 'waiting':
      return null
  }
}

/** Time in which nothing would be seen to happen, in words. `sending`: not accepted yet. */
export function ActivityLine(props: { transcript: Transcript; sending: boolean; stopping: boolean }) {
  const activity = activityOf(props.transcript)
  const words = props.stopping
    ? 'Stopping…'
    : activity !== null
      ? wordsOf(activity)
      : props.sending
        ? 'Sending…'
        : null
  const since = activity !== null && 'since' in activity ? activity.since : undefined
  if (words === null) return null
  return (
    <div data-testid="activity" role="status" className="flex h-7 items-center gap-2.5 text-sm">
      <span className="size-1.5 rounded-full bg-accent pulse-dot" aria-hidden />
      <span className="shimmer">{words}</span>
      {since !== undefined && !props.stopping && <Waited since={since} />}
    </div>
  )
}

/** Only when it takes long enough that a person begins to wonder. */
function Waited(props: { since: number }) {
  const now = useNow(true)
  const waited = now - props.since
  if (waited < 5000) return null
  return (
    <span className="text-xs text-faint tabular-nums" aria-hidden>
      {formatDuration(Math.floor(waited / 1000) * 1000).replace('.0', '')}
    </span>
  )
}
