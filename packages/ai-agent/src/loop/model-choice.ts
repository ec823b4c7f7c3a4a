/**
 * Which model a session asks, and at which thought level: what was chosen last, as the log
 * says. A prompt keeps what it began with, also over a restart. Pure functions over the log and the
 * models that there are.
 */
import { SandlotError } from '@sandlot/shared/base/errors'
import { type SessionEvent, metaOf, sandlotEventOf } from '@sandlot/shared/chat/events'
import type { Model } from '../model/model.ts'

/** The models of a deployment: `model` unless a session has chosen one of `choices`. */
export interface Models {
  model: Model
  choices?: readonly Model[]
  /** Asked in this order when the one before is overloaded, throttled or has no quota left. */
  fallbacks?: readonly Model[]
}

export interface ModelChoice {
  /** The model's name. */
  model: string
  /** One of its thought levels. Absent: as it does by itself. */
  thoughtLevel?: string | undefined
}

/** Those of these names, in the order of the deployment. `names` undefined: all. */
export function allowedModels(models: Models, names: readonly string[] | undefined): Models {
  if (names === undefined) return models
  const [model = models.model, ...choices] = modelsOf(models).filter(({ name }) => names.includes(name))
  return { model, choices }
}

/** The replacement of a chosen model that exists and may not be chosen any more. */
export function replacedChoice(
  log: readonly SessionEvent[],
  models: Models,
  allowed: Models,
): ModelChoice | undefined {
  if (find(allowed, chosenIn(log, models).model) !== undefined) return undefined
  return { model: allowed.model.name }
}

/** All that may be chosen, the deployment's own first. */
export function modelsOf({ model, choices = [] }: Models): readonly Model[] {
  return [model, ...choices]
}

/**
 * The choice of a prompt that begins now. A model, or a level, that was removed counts as not
 * chosen.
 */
export function chosenIn(log: readonly SessionEvent[], models: Models): ModelChoice {
  for (let at = log.length - 1; at >= 0; at--) {
    const event = log[at]
    const happened = event === undefined ? undefined : sandlotEventOf(event)
    if (happened?.type === 'model_chosen') return known(happened, models)
  }
  return { model: models.model.name }
}

/** The model that this prompt began with, at its level of thought. */
export function modelOfPrompt(log: readonly SessionEvent[], promptId: string, models: Models): Model {
  for (let at = log.length - 1; at >= 0; at--) {
    const event = log[at]
    const happened = event === undefined ? undefined : sandlotEventOf(event)
    if (event === undefined || happened?.type !== 'prompt_started' || metaOf(event).promptId !== promptId)
      continue
    const { model = '', thoughtLevel } = happened
    return withLevel(find(models, model) ?? models.model, thoughtLevel)
  }
  return models.model
}

/** The level at which this prompt began to think. */
export function levelOfPrompt(log: readonly SessionEvent[], promptId: string): string | undefined {
  for (const event of log) {
    const happened = sandlotEventOf(event)
    if (happened?.type === 'prompt_started' && metaOf(event).promptId === promptId)
      return happened.thoughtLevel
  }
  return undefined
}

/** The model at this level, where it has it. */
export function withLevel(model: Model, level: string | undefined): Model {
  return level !== undefined && hasLevel(model, level) ? (model.atLevel?.(level) ?? model) : model
}

/**
 * `before` changed by a choice; a level that another model does not have is dropped with
 * it. `thoughtLevel` null: none. Throws `bad_request` that names what there is.
 */
export function choose(
  before: ModelChoice,
  change: { model?: string | undefined; thoughtLevel?: string | null | undefined },
  models: Models,
): ModelChoice {
  const name = change.model ?? before.model
  const model = find(models, name)
  if (model === undefined) {
    const names = modelsOf(models).map((one) => one.name)
    throw new SandlotError('bad_request', `There is no model “${name}” here; there is ${names.join(', ')}.`)
  }
  const { thoughtLevel } = change
  if (thoughtLevel == null) {
    const level = thoughtLevel === undefined ? before.thoughtLevel : undefined
    return { model: name, ...(level !== undefined && hasLevel(model, level) ? { thoughtLevel: level } : {}) }
  }
  if (!hasLevel(model, thoughtLevel)) {
    const levels = model.thoughtLevels ?? []
    const there =
      levels.length === 0 ? 'it cannot be told how hard to think' : `there is ${levels.join(', ')}`
    throw new SandlotError('bad_request', `${name} has no thought level “${thoughtLevel}”; ${there}.`)
  }
  return { model: name, thoughtLevel }
}

function known({ model: name, thoughtLevel }: ModelChoice, models: Models): ModelChoice {
  const model = find(models, name)
  if (model === undefined) return { model: models.model.name }
  const has = thoughtLevel !== undefined && hasLevel(model, thoughtLevel)
  return { model: name, ...(has ? { thoughtLevel } : {}) }
}

function find(models: Models, name: string): Model | undefined {
  return modelsOf(models).find((model) => model.name === name)
}

function hasLevel({ thoughtLevels = [] }: Model, level: string): boolean {
  return thoughtLevels.includes(level)
}
