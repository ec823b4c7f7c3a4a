/**
 * Chooses what to leave out when the context gets full. Pure: from the log and the size of the
 * context alone.
 */
import { type SessionEvent, seqOf } from '@sandlot/shared/chat/events'
import { isWorthPruning, readItems, type Item } from '../history/model-messages.ts'
import { textTokens } from '../model/tokens.ts'
import { compactionOf } from '../history/compaction.ts'

/** Results of the last turns stay, as far as they take no more than this share of the window. */
const RESULTS_SHARE = 0.15
/** The largest share of the context for messages and calls after the cut. */
const TAIL_SHARE = 0.25

/**
 * Number of the last event whose call's result may go: all but the newest results, and never those
 * of the last turn with calls, which the model has not read yet. Undefined when nothing is left to
 * leave out.
 */
export function planPruning(log: readonly SessionEvent[], contextWindow: number): number | undefined {
  const before = compactionOf(log)
  const turns = readItems(log).flatMap((item) =>
    item.type === 'turn' && item.turn.calls.length > 0 ? [item.turn] : [],
  )
  let room = contextWindow * RESULTS_SHARE
  let upTo: number | undefined
  for (const turn of turns.slice(0, -1).toReversed()) {
    const worth = turn.calls.filter(
      (record) => (seqOf(record.call) ?? 0) > before.prunedUpTo && isWorthPruning(record),
    )
    room -= worth.reduce((sum, { outcome }) => sum + textTokens(outcome?.rawOutput?.forModel ?? ''), 0)
    if (room >= 0 || worth.length === 0) continue
    const seqs = turn.calls.map(({ call }) => seqOf(call) ?? 0)
    upTo = Math.max(upTo ?? 0, ...seqs)
  }
  return upTo
}

/** The same when there is no other way: everything but the last turn's results. */
export function planPruningOfAll(log: readonly SessionEvent[]): number | undefined {
  return planPruning(log, 0)
}

/**
 * Number of the last event that a summary is to stand for. The cut comes before a message of the
 * user where one is near enough, else before a turn; never inside one, and the last turn stays
 * whatever its size. Undefined: nothing to cut.
 */
export function planCut(log: readonly SessionEvent[], contextWindow: number): number | undefined {
  const { upTo } = compactionOf(log)
  const items = readItems(log).filter(({ seq }) => seq > upTo)
  const places = items.flatMap((item, place) => (item.type === 'end' ? [] : [place]))
  let tail = 0
  let near: number | undefined
  let nearUser: number | undefined
  const lastTurn = items.findLastIndex(({ type }) => type === 'turn')
  const lastUser = items.findLastIndex(({ type }) => type === 'user')
  for (const place of places.toReversed()) {
    const item = items[place]
    if (item === undefined) continue
    tail += tokensOf(item)
    // A message that nothing answered may be what did not fit.
    const mayGo = place < lastTurn || (item.type === 'user' && place < lastUser)
    if (tail > contextWindow * TAIL_SHARE && mayGo) break
    near = place
    if (item.type === 'user') nearUser = place
  }
  const cut = nearUser !== undefined && nearUser > 0 ? nearUser : near
  const first = items[cut ?? 0]
  // A message of the user alone is not worth a summary, unless it is a large one of before.
  const gone = items.slice(0, cut ?? 0)
  const isLarge = gone.reduce((sum, item) => sum + tokensOf(item), 0) > contextWindow * TAIL_SHARE
  const isWorth = gone.some(({ type }) => type === 'turn') || (isLarge && first?.type === 'user')
  if (first === undefined || !isWorth) return undefined
  return first.seq - 1
}

function tokensOf(item: Item): number {
  if (item.type === 'user') return textTokens(item.text) + item.images.length * 1_500
  if (item.type === 'end') return textTokens(item.text ?? '')
  const { text, calls } = item.turn
  return calls.reduce(
    (sum, { call, outcome }) =>
      sum + textTokens(JSON.stringify(call.rawInput ?? {}) + (outcome?.rawOutput?.forModel ?? '')),
    textTokens(text),
  )
}
