/** A model that finds out over which of the wires its endpoint answers. */
import type { WireName } from '@sandlot/shared/account/models-api'
import type { SetIn } from '@sandlot/shared/chat/reasons'
import { type HttpModelOptions, createHttpModel } from './http-model.ts'
import type { Model, ModelRequest } from './model.ts'
import { refusedByBoth, wireAfter, wireOfAddress, withoutReplay } from './wires/choice.ts'

/**
 * Asks over `wire` (default: the one that suits the address). A request that is refused because the
 * model lives on another API is sent again, over that one. If that answers, all later requests
 * use it, and `switched` is called; else nothing changes, and the error names both refusals.
 */
export function createChoosingModel(
  options: HttpModelOptions,
  switched: (from: WireName, to: WireName) => void,
  setIn?: SetIn,
): Model {
  const address = new URL(options.baseUrl)
  const models = new Map<WireName, Model>()
  const over = (wire: WireName): Model => {
    const model = models.get(wire) ?? createHttpModel({ ...options, wire }, setIn)
    models.set(wire, model)
    return model
  }
  let current = options.wire ?? wireOfAddress(address)

  const at = (level: string | undefined): Model => {
    const levelled = (wire: WireName): Model => {
      const model = over(wire)
      // The wires of a model may have different levels.
      return level !== undefined && model.thoughtLevels?.includes(level)
        ? (model.atLevel?.(level) ?? model)
        : model
    }
    const stream: Model['stream'] = async (request, signal, onPiece) => {
      const from = current
      let isShown = false
      try {
        const sent = (request.wire ?? from) === from ? request : withoutReplay(request)
        return await levelled(from).stream(sent, signal, (piece) => {
          isShown = true
          onPiece(piece)
        })
      } catch (error) {
        const to = isShown ? undefined : wireAfter(error, from, address)
        if (to === undefined) throw error
        const answer = await otherwise(levelled(to), request, signal, onPiece, (second) =>
          refusedByBoth([error, second], [from, to], options.model, setIn),
        )
        if (current === from) {
          current = to
          switched(from, to)
        }
        return answer
      }
    }
    const own = { stream, atLevel: at }
    // All else is that of the current wire.
    return new Proxy(levelled(current), {
      get: (_, key) => Reflect.get(key in own ? own : levelled(current), key),
    })
  }
  return at(undefined)
}

/** The answer over another wire. Rejects with what `explained` makes of the failure. */
async function otherwise(
  model: Model,
  request: ModelRequest,
  signal: AbortSignal,
  onPiece: Parameters<Model['stream']>[2],
  explained: (error: unknown) => unknown,
): ReturnType<Model['stream']> {
  try {
    return await model.stream(withoutReplay(request), signal, onPiece)
  } catch (error) {
    throw signal.aborted ? error : explained(error)
  }
}
