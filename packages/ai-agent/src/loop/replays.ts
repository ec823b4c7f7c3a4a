/**
 * Items that providers want back with their answers. They stand in the log with the answer; where
 * they are long they are a stored output, so that the log stays short.
 */
import { createHash } from 'node:crypto'
import { type SandlotMeta, replayId } from '@sandlot/shared/chat/event-meta'
import type { SessionEvent } from '@sandlot/shared/chat/events'
import { readItems } from '../history/model-messages.ts'
import type { Model, ReplayItem } from '../model/model.ts'
import type { LoopContext } from './context.ts'

/** Bytes of an answer's items in the log. */
const MOST_BYTES = 256 * 1024

type ForProvider = NonNullable<SandlotMeta['forProvider']>

/**
 * The items of an answer as they stand in the log. Undefined where they are too long for it and
 * there is no room for them: the answer goes on without.
 */
export async function storedReplay(
  { replays, promptId, warn }: LoopContext,
  turn: number,
  { wire = '', origin }: Model,
  items: readonly ReplayItem[],
): Promise<ForProvider | undefined> {
  const bytes = Buffer.from(JSON.stringify(items))
  if (bytes.length <= MOST_BYTES) return { replay: { wire, origin, items: [...items] } }
  const output = replayId(createHash('sha256').update(bytes).digest('hex'))
  if (await replays.save(output, bytes)) return { replay: { wire, origin, output } }
  warn({ promptId, turn, bytes: bytes.length }, 'there is no room for what the provider wants back')
  return undefined
}

/** Items of this branch that are stored outputs, by their ids, for the model that made them. */
export async function loadReplays(
  { replays, log }: Pick<LoopContext, 'replays' | 'log'>,
  { wire, origin }: Model,
): Promise<ReadonlyMap<string, readonly ReplayItem[]>> {
  const ids = outputsOf(log()).filter((one) => one.wire === wire && one.origin === origin)
  const loaded = await Promise.all(
    ids.map(async ({ output }) => [output, await replays.load(output)] as const),
  )
  return new Map(
    loaded.flatMap(([id, bytes]) =>
      bytes.length === 0 ? [] : [[id, JSON.parse(Buffer.from(bytes).toString()) as ReplayItem[]]],
    ),
  )
}

function outputsOf(log: readonly SessionEvent[]) {
  return readItems(log).flatMap((item) => {
    const replay = item.type === 'turn' ? item.turn.replay : undefined
    return replay?.output === undefined ? [] : [{ ...replay, output: replay.output }]
  })
}
