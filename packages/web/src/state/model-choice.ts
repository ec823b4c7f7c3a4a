/** Which model answers a session, as the page knows it. */
import type { Me } from '@sandlot/shared/account/api'
import type { ModelAbout } from '@sandlot/shared/chat/model-choice'
import type { Transcript } from '@sandlot/shared/transcript/transcript'

export interface ModelChoice {
  model: string
  /** Null: as the model does by itself. */
  thoughtLevel: string | null
}

/**
 * Facts about the model of this name; of the deployment's own model also where the agent sends no
 * list.
 */
export function aboutModel(me: Me, name: string): ModelAbout | undefined {
  return me.models?.find((model) => model.name === name)
}

/**
 * The session's choice for its next message, with the unsent part of it; a model that was removed
 * counts as none.
 */
export function modelOf(
  { model }: Pick<Transcript, 'model'>,
  me: Me,
  waiting: { model?: string | undefined; thoughtLevel?: string | null | undefined } = {},
): ModelChoice {
  const there = model !== null && aboutModel(me, model.name) !== undefined
  const sent = there
    ? { model: model.name, thoughtLevel: model.thoughtLevel ?? null }
    : { model: me.model.name, thoughtLevel: null }
  const { model: name = sent.model, thoughtLevel = sent.thoughtLevel } = waiting
  return { model: name, thoughtLevel }
}

/** The part of the choice that differs, so that it fits whatever else was chosen on the way. */
export function changeOf(before: ModelChoice, after: ModelChoice): Partial<ModelChoice> {
  return {
    ...(after.model === before.model ? {} : { model: after.model }),
    ...(after.thoughtLevel === before.thoughtLevel ? {} : { thoughtLevel: after.thoughtLevel }),
  }
}

/** There is more than one model, or one with a choice of reasoning effort. */
export function hasChoice({ models = [] }: Me): boolean {
  return models.length > 1 || models.some(({ thoughtLevels }) => thoughtLevels.length > 0)
}

/** The choice with another model: a level stays where that has it too. */
export function withModel(me: Me, choice: ModelChoice, model: string): ModelChoice {
  const levels = aboutModel(me, model)?.thoughtLevels ?? []
  const isOffered = choice.thoughtLevel !== null && levels.includes(choice.thoughtLevel)
  return { model, thoughtLevel: isOffered ? choice.thoughtLevel : null }
}
