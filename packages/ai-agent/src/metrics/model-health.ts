/**
 * Health of each model's provider, from the requests of prompts; no request is made to find out.
 */
import type { AgentStatus } from '@sandlot/shared/acp/meta'
import type { ModelErrorClass } from '@sandlot/shared/chat/reasons'

/** The provider did not serve us, whatever we asked; anything else is about that one request. */
const UNSERVED: ReadonlySet<ModelErrorClass> = new Set([
  'overloaded',
  'server_error',
  'provider_error',
  'timeout',
  'stream_interrupted',
  'unreachable',
])
/** In a row: more than one turn tries, so that one bad moment is no failing provider. */
const FAILING_AFTER = 5

interface Health {
  failures: number
  /** The class of the last failure that counted. */
  why: ModelErrorClass | undefined
}

type Reason = AgentStatus['reasons'][number]

export class ModelHealth {
  readonly #byModel = new Map<string, Health>()

  served(model: string): void {
    this.#byModel.set(model, { failures: 0, why: undefined })
  }

  failed(model: string, why: ModelErrorClass): void {
    if (why !== 'auth' && why !== 'quota' && !UNSERVED.has(why)) return
    const failures = (this.#byModel.get(model)?.failures ?? 0) + 1
    this.#byModel.set(model, { failures, why })
  }

  /** Reasons of those models about which something is known. */
  reasons(names: readonly string[]): Reason[] {
    const known = names.flatMap((name) => {
      const health = this.#byModel.get(name)
      return health === undefined ? [] : [{ name, ...health }]
    })
    const refused = known.filter(({ why }) => why === 'auth').map(({ name }) => `that of ${name}`)
    const failing = known.flatMap(({ name, why, failures }) =>
      why === 'quota'
        ? [`The quota of ${name} is used up.`]
        : why !== undefined && why !== 'auth' && failures >= FAILING_AFTER
          ? [`The last ${failures} requests to ${name} failed (${why.replaceAll('_', ' ')}).`]
          : [],
    )
    const serves = known.some(({ why }) => why === undefined)
    const key =
      refused.length === 0 ? 'The model’s key is accepted.' : `A key is refused: ${refused.join(', ')}.`
    const provider = failing.length === 0 ? 'The model’s provider answers.' : failing.join(' ')
    return [
      ...(serves || refused.length > 0
        ? [{ part: 'model-key', ok: refused.length === 0, message: key }]
        : []),
      ...(serves || failing.length > 0
        ? [{ part: 'provider', ok: failing.length === 0, message: provider }]
        : []),
    ]
  }
}
