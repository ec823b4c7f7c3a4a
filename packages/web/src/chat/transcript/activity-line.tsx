import { type Activity, activityOf } from '@sandlot/shared/transcript/activity'
import { queueText } from '@sandlot/shared/chat/queue-wait'
import { secondsLeft, waitWords } from '@sandlot/shared/transcript/cause-words'
import type { Transcript } from '@sandlot/shared/transcript/transcript'
import { formatDuration } from '../../lib/format.ts'
import { useNow } from '../../lib/use-now.ts'

function wordsOf(activity: Activity): string | null {
  switch (activity.doing) {
    case 'thinking':
      return 'Thinking…'
    case 'reading_results':
      return 'Reading results…'
    case 'preparing':
      return `${activity.message}…`
    // The text that grows, the cards that run and the questions that wait speak for themselves.
    case 'writing':
    case 'running':
    case 'waiting':
      return null
    case 'queued':
      return queueText(activity.queue)
    case 'trying_again':
      return waitWords(activity.wait, 0)
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
    <div data-testid="activity" role="status" className="flex min-h-7 items-center gap-2.5 text-sm">
      <span className="size-1.5 rounded-full bg-accent pulse-dot" aria-hidden />
      {activity?.doing === 'trying_again' && !props.stopping ? (
        <TryingAgain wait={activity.wait} />
      ) : (
        <span className="shimmer">{words}</span>
      )}
      {since !== undefined && !props.stopping && <Waited since={since} />}
    </div>
  )
}

/** Counts down in sight; announced once. */
function TryingAgain(props: { wait: NonNullable<Transcript['wait']> }) {
  const { wait } = props
  const now = useNow(true)
  return (
    <>
      <span className="sr-only">{waitWords(wait, 0)}</span>
      <span className="shimmer min-w-0 tabular-nums" aria-hidden>
        {waitWords(wait, secondsLeft(wait, now))}
      </span>
    </>
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
