/** Waits for a slot before the model is asked. */
import { makeSandlotEvent } from '@sandlot/shared/chat/events'
import type { Model } from '../model/model.ts'
import type { LoopContext } from './context.ts'

/**
 * Shows where it stands in line until its turn has come; nothing where there is room. `refused`: it
 * says already that the model refused it, so only others before it are news. Resolves with `left`
 * when Stop came first.
 */
export async function acquireSlot(
  ctx: LoopContext,
  turn: number | undefined,
  model: Model,
  refused = false,
): Promise<'taken' | 'left'> {
  const waits = ctx.slot?.enter(model.name)
  if (waits === undefined) return 'taken'
  let shown = false
  for await (const wait of waits) {
    if (!shown && (wait.place === 0 || (refused && wait.place === 1))) continue
    shown = true
    const event = { type: 'line_waited', ...wait } as const
    ctx.show(makeSandlotEvent(event, { promptId: ctx.promptId, turn, live: true }, ctx.now()))
  }
  ctx.released.throwIfAborted()
  return ctx.signal.aborted ? 'left' : 'taken'
}
