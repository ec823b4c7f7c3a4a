/** The models that an operator has configured, or the demo. */
import { createDemoModel } from './demo/demo.ts'
import type { Model } from './model.ts'
import { createOpenAIModel } from './openai.ts'
import type { ModelSettings, ModelsSettings } from './settings.ts'

interface ConfiguredModels {
  model: Model
  /** What a session may choose instead of it. */
  choices: Model[]
  /** Asked in this order when the one before is overloaded, throttled or has no quota left. */
  fallbacks: Model[]
}

export function configuredModels(models: ModelsSettings | undefined): ConfiguredModels {
  if (models === undefined) return { model: createDemoModel(), choices: [], fallbacks: [] }
  const { main, choices, fallbacks, ...timeouts } = models
  const made = new Map<ModelSettings, Model>()
  // What an endpoint has taught one of them about itself the others know too, where they are the
  // same.
  const create = (settings: ModelSettings): Model => {
    const { name, ...about } = settings
    const model = made.get(settings) ?? createOpenAIModel({ ...about, model: name, ...timeouts })
    made.set(settings, model)
    return model
  }
  return { model: create(main), choices: choices.map(create), fallbacks: fallbacks.map(create) }
}
