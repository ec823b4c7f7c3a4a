/**
 * Items that providers want back with their answers. They stand in the log with the answer; where
 * they are long they are a stored output, so that the log stays short.
 */
import { createHash } from 'node:crypto'
import { type SandlotMeta, replayId } from '@sandlot/shared/chat/event-meta'
import { type SessionEvent, makeSandlotEvent } from '@sandlot/shared/chat/events'
import type { ErrorCause, ModelErrorClass } from '@sandlot/shared/chat/reasons'
import { compactionOf } from '../history/compaction.ts'
import { isRefused, readItems } from '../history/model-messages.ts'
import { parseJson } from '../model/json.ts'
import { type Model, type ModelAnswer, ModelError, type ReplayItem } from '../model/model.ts'
import type { LoopContext } from './context.ts'

/** Bytes of an answer's items in the log. */
const MOST_BYTES = 256 * 1024

/**
 * The items of an answer as they stand in the log. Undefined where there are none, or where they
 * are too long for it and there is no room for them: the answer is stored without them.
 */
export async function storedReplay(
  { replays, promptId, warn }: LoopContext,
  turn: number,
  model: Model,
  { replay: items, wire = model.wire ?? '' }: ModelAnswer,
): Promise<SandlotMeta['forProvider']> {
  if (items === undefined) return undefined
  const { origin } = model
  const bytes = Buffer.from(JSON.stringify(items))
  if (bytes.length <= MOST_BYTES) return { replay: { wire, origin, items: [...items] } }
  const output = replayId(createHash('sha256').update(bytes).digest('hex'))
  if (await replays.save(output, bytes)) return { replay: { wire, origin, output } }
  warn({ promptId, turn, bytes: bytes.length }, 'there is no room for what the provider wants back')
  return undefined
}

/**
 * Items that are stored outputs, by their ids: those of this branch that the next request to
 * `model` has. An output that retention has removed, or half of it, is none.
 */
export async function loadReplays(
  { replays, log }: Pick<LoopContext, 'replays' | 'log'>,
  { wire, origin }: Model,
): Promise<ReadonlyMap<string, readonly ReplayItem[]>> {
  const events = log()
  if (origin !== undefined && isRefused(events, origin)) return new Map()
  const { upTo } = compactionOf(events)
  const ids = readItems(events).flatMap((item) => {
    const replay = item.type === 'turn' && item.seq > upTo ? item.turn.replay : undefined
    const isWanted = replay?.wire === wire && replay?.origin === origin
    return replay?.output === undefined || !isWanted ? [] : [replay.output]
  })
  const loaded = await Promise.all(ids.map(async (id) => [id, await replays.load(id)] as const))
  return new Map(
    loaded.flatMap(([id, bytes]) => {
      const items = parseJson(Buffer.from(bytes).toString())
      return items.ok && Array.isArray(items.value) ? [[id, items.value as ReplayItem[]]] : []
    }),
  )
}

/**
 * The event after which no reasoning goes back to this provider, where it refused it for the first
 * time.
 */
export function refusedReplay(
  { log, promptId, now }: LoopContext,
  turn: number | undefined,
  { origin }: Model,
  error: unknown,
): SessionEvent | undefined {
  const isRefusal = error instanceof ModelError && error.class === 'replay_refused'
  if (!isRefusal || origin === undefined || isRefused(log(), origin)) return undefined
  return makeSandlotEvent(
    { type: 'history_mended', why: error.forMembers, origin },
    { promptId, turn },
    now(),
  )
}

/** The cause of an end, as it is stored: the version before cannot read `replay_refused`. */
export function storedCause(errorClass: ModelErrorClass): ErrorCause {
  return errorClass === 'replay_refused' ? 'invalid_history' : errorClass
}
