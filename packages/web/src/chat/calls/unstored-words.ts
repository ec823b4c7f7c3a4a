/** Why the card has not all of an output. */
import type { OutputInfo } from '@sandlot/shared/chat/call'
import { formatBytes } from '@sandlot/shared/base/format-bytes'

type Unstored = NonNullable<OutputInfo['unstored']>

const WHY: Record<Unstored['why'], string> = {
  limit: 'the limit for one output.',
  budget: 'your chat storage is full. Delete chats to free up space.',
  disk: 'the server’s disk is nearly full.',
}

export function unstoredWords({ from, why }: Unstored): string {
  const stored = from === 0 ? 'None of it was stored' : `Only the first ${formatBytes(from)} were stored`
  return `${stored}: ${WHY[why]}`
}
