/**
 * Which model a prompt asks: the configured one, or after a failure that only another model mends,
 * the next on the list.
 */
import { type SessionEvent, makeSandlotEvent, metaOf, sandlotEventOf } from '@sandlot/shared/events'
import type { LoopContext } from './context.ts'
import type { ModelErrorClass } from '@sandlot/shared/reasons'
import type { Model } from '../model/model.ts'

/**
 * The provider cannot serve us now, whatever we ask. Everything else would fail with another model
 * too, or is ours to mend.
 */
const ANOTHER_MAY: readonly ModelErrorClass[] = ['overloaded', 'rate_limit', 'quota']

/** The model of this prompt, as the log says: the same before and after a restart. */
export function modelOf(ctx: LoopContext): Model {
  const changed = changesOf(ctx).at(-1)
  return ctx.fallbacks?.find(({ name }) => name === changed) ?? ctx.model
}

/**
 * The event with which the prompt goes on with another model, if there is one left for such a
 * failure.
 */
export function changeOfModel(
  ctx: LoopContext,
  turn: number,
  why: ModelErrorClass,
): SessionEvent | undefined {
  if (!ANOTHER_MAY.includes(why)) return undefined
  const tried = new Set([ctx.model.name, ...changesOf(ctx)])
  const next = ctx.fallbacks?.find(({ name }) => !tried.has(name))
  if (next === undefined) return undefined
  const event = { type: 'model_changed', model: next.name, why } as const
  return makeSandlotEvent(event, { promptId: ctx.promptId, turn }, ctx.now())
}

function changesOf(ctx: LoopContext): string[] {
  return ctx.log().flatMap((event) => {
    const happened = sandlotEventOf(event)
    return happened?.type === 'model_changed' && metaOf(event).promptId === ctx.promptId
      ? [happened.model]
      : []
  })
}
