/** A tool from a plain function, for programs that use the loop by itself. */
import type { ToolKind } from '@sandlot/shared/chat/call'
import { SerialQueue } from '@sandlot/shared/async/serial-queue'
import { messageOf } from '@sandlot/shared/base/errors'
import { checkSchema } from '../mcp/schema-check.ts'
import { ToolError } from '../tools/tool-error.ts'
import { orAborted } from '@sandlot/shared/async/or-aborted'
import type { Tool } from '../tools/tool.ts'

export interface PlainTool {
  /** `[A-Za-z0-9_-]{1,64}` */
  name: string
  description: string
  /** JSON Schema of type `object`. The function sees only arguments that fit it. */
  parameters: Record<string, unknown>
  /** Runs together with other reads. Default false: alone, in the model's order. */
  readOnly?: boolean
  /** Default `other`. */
  kind?: ToolKind
  /** Milliseconds, 1,000–300,000. */
  timeoutMs?: number
  /** The prompt ends when it fails. */
  fatal?: boolean
  /**
   * Returns, or resolves to, what the model reads: a text as it is, anything else as JSON, bytes as
   * the UTF-8 that they are. What is thrown is a failed call, whose message the model reads.
   */
  execute(args: Record<string, unknown>, signal: AbortSignal): unknown
}

export function plainTool(tool: PlainTool): Tool {
  const { name, description, parameters, readOnly = false, kind = 'other', timeoutMs, fatal } = tool
  const checks = new SerialQueue()
  return {
    name,
    description,
    kind,
    readOnly,
    // In the order of the calls, which begin in it.
    input: {
      parameters,
      check: (args: Record<string, unknown>) => checks.run(() => problemsOf(parameters, args)),
    },
    runs: { timeoutMs, fatal },
    title: () => name,
    // oxlint-disable-next-line require-yield
    async *execute(args, ctx) {
      const result = await resultOf(tool, args, ctx.signal)
      return { status: 'completed', forModel: textOf(name, result) }
    },
  }
}

async function resultOf(
  tool: PlainTool,
  args: Record<string, unknown>,
  signal: AbortSignal,
): Promise<unknown> {
  try {
    return await orAborted(Promise.resolve(tool.execute(args, signal)), signal)
  } catch (error) {
    signal.throwIfAborted()
    throw new ToolError('tool_error', messageOf(error), { cause: error })
  }
}

/** The text of a result for the model. */
function textOf(name: string, result: unknown): string {
  if (typeof result === 'string') return result
  try {
    if (result instanceof Uint8Array) return new TextDecoder('utf-8', { fatal: true }).decode(result)
    const json = JSON.stringify(result, null, 2) as string | undefined
    if (json !== undefined || result === undefined) return json ?? ''
  } catch (error) {
    throw unreadable(name, result, error)
  }
  throw unreadable(name, result)
}

function unreadable(name: string, result: unknown, cause?: unknown): ToolError {
  const what =
    result instanceof Uint8Array
      ? `${result.length} bytes that are no text`
      : `a value of type ${typeof result} that is not JSON`
  const why = cause === undefined ? '' : ` (${messageOf(cause)})`
  return new ToolError(
    'invalid_output',
    `${name} ran and returned ${what}${why}, so its result is lost.`,
    cause === undefined ? {} : { cause },
  )
}

/** A schema that we cannot read checks nothing: the function has to. */
async function problemsOf(
  parameters: Record<string, unknown>,
  args: Record<string, unknown>,
): Promise<string[]> {
  const checked = await checkSchema(parameters, args)
  return checked.fits === 'no' ? checked.problems : []
}
