/** A tool from a plain function, for programs that use the loop by itself. */
import type { ToolKind } from '@sandlot/shared/call'
import { CallFailure } from '../tools/call-failure.ts'
import type { Tool } from '../tools/tool.ts'
import { argumentNames } from '../tools/tool-input.ts'

export interface PlainTool {
  /** `[A-Za-z0-9_-]{1,64}` */
  name: string
  description: string
  /** JSON Schema of type `object`. Required and unknown arguments are checked here, types are left to the function. */
  parameters: Record<string, unknown>
  /** Runs together with other reads. Default false: alone, in the model's order. */
  readOnly?: boolean
  /** Default `other`. */
  kind?: ToolKind
  /** Milliseconds, 1,000–300,000. */
  timeoutMs?: number
  /** The prompt ends when it fails. */
  fatal?: boolean
  /** Returns what the model reads; throwing is a failed call, whose message the model reads. */
  execute(args: Record<string, unknown>, signal: AbortSignal): Promise<string> | string
}

export function plainTool(tool: PlainTool): Tool {
  const { name, description, parameters, readOnly = false, kind = 'other', timeoutMs, fatal } = tool
  return {
    id: name,
    name,
    description,
    kind,
    readOnly,
    input: { parameters, check: (args: Record<string, unknown>) => problemsOf(parameters, args) },
    ...(timeoutMs === undefined ? {} : { timeoutMs }),
    ...(fatal === undefined ? {} : { fatal }),
    title: () => name,
    // oxlint-disable-next-line require-yield
    async *execute(args, ctx) {
      try {
        return {
          status: 'completed',
          forModel: await untilAborted(tool.execute(args, ctx.signal), ctx.signal),
        }
      } catch (error) {
        ctx.signal.throwIfAborted()
        const message = error instanceof Error ? error.message : String(error)
        throw new CallFailure('tool_error', message, { cause: error })
      }
    },
  }
}

function problemsOf(parameters: Record<string, unknown>, args: Record<string, unknown>): string[] {
  const known = argumentNames({ parameters, check: () => [] })
  const required = Array.isArray(parameters['required']) ? (parameters['required'] as unknown[]) : []
  const missing = required.filter((name) => typeof name === 'string' && !Object.hasOwn(args, name))
  const closed = parameters['additionalProperties'] === false
  const unknown = closed ? Object.keys(args).filter((name) => !known.includes(name)) : []
  return [
    ...missing.map((name) => `${String(name)}: is missing`),
    ...unknown.map((name) => `there is no argument ${JSON.stringify(name)}`),
  ]
}

/** A function that does not look at the signal is left behind. */
function untilAborted(work: Promise<string> | string, signal: AbortSignal): Promise<string> {
  const { promise, resolve, reject } = Promise.withResolvers<string>()
  const abort = (): void => reject(signal.reason instanceof Error ? signal.reason : new Error('aborted'))
  if (signal.aborted) abort()
  signal.addEventListener('abort', abort, { once: true })
  void Promise.resolve(work).then(resolve, reject)
  return promise.finally(() => signal.removeEventListener('abort', abort))
}
