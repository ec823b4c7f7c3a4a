/** Tools as a small window leaves room for them. Pure. */
import { systemText } from '../history/model-messages.ts'
import type { Model, ModelTool } from '../model/model.ts'
import { textTokens, toolsTokens } from '../model/tokens.ts'
import type { LoopContext } from './context.ts'

/** The largest share of the window for instructions and tools. */
const SHARE = 0.4
const DESCRIPTION_CHARS = 160

type Fitted = { system: string; window: number; tools: readonly ModelTool[] }
const fitted = new WeakMap<readonly ModelTool[], Fitted>()

/**
 * The tools of a request to this model: as they are, where the instructions leave room for them;
 * else with short descriptions; and if that is not enough, without the largest. In their order, and
 * the same until the window or the instructions in the system text change.
 */
export function fittingTools(
  ctx: Pick<LoopContext, 'tools' | 'system' | 'log'>,
  model: Model,
): readonly ModelTool[] {
  const { tools } = ctx
  const system = systemText(ctx.log(), ctx.system)
  const window = model.window.tokens
  const known = fitted.get(tools)
  if (known?.system === system && known.window === window) return known.tools
  const fit = fitInto(tools, window * SHARE - textTokens(system))
  fitted.set(tools, { system, window, tools: fit })
  return fit
}

function fitInto(tools: readonly ModelTool[], most: number): readonly ModelTool[] {
  if (toolsTokens(tools) <= most) return tools
  let left = tools.map((tool) => ({
    ...tool,
    description: shortDescription(tool.description),
    parameters: withoutDescriptions(tool.parameters) as Record<string, unknown>,
  }))
  while (left.length > 0 && toolsTokens(left) > most) {
    const sizes = left.map((tool) => toolsTokens([tool]))
    left = left.toSpliced(sizes.indexOf(Math.max(...sizes)), 1)
  }
  return left
}

/** Its first sentence. */
function shortDescription(text: string): string {
  const sentence = /^[\s\S]*?[.!?](?=\s|$)/.exec(text)?.[0] ?? text
  return sentence.slice(0, DESCRIPTION_CHARS).toWellFormed()
}

/** Members whose keys are names, not words of JSON Schema. */
const OF_NAMES: ReadonlySet<string> = new Set(['properties', 'patternProperties', '$defs', 'definitions'])

function withoutDescriptions(schema: unknown, keysAreNames = false): unknown {
  if (Array.isArray(schema)) return schema.map((one) => withoutDescriptions(one))
  if (typeof schema !== 'object' || schema === null) return schema
  return Object.fromEntries(
    Object.entries(schema).flatMap(([key, value]: [string, unknown]) =>
      key === 'description' && !keysAreNames
        ? []
        : [[key, withoutDescriptions(value, !keysAreNames && OF_NAMES.has(key))]],
    ),
  )
}

/** Tokens for a message and an answer, without which there is nothing to ask. */
const LEAST_ROOM = 512

/** True if the instructions alone leave no room for a message and its answer. */
export function isTooSmall({ system, log }: Pick<LoopContext, 'system' | 'log'>, { window }: Model): boolean {
  return textTokens(systemText(log(), system)) + LEAST_ROOM > window.tokens
}
