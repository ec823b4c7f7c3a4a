/** One tool of a server as a tool like any other: policies, scheduler and screen see no difference. */
import { randomUUID } from 'node:crypto'
import { CallFailure } from '../tools/call-failure.ts'
import type { JsonSchemaInput } from '../tools/tool-input.ts'
import type { Tool, ToolOutcome, ToolUpdate } from '../tools/tool.ts'
import { toolId } from './exposed-names.ts'
import { Latest } from './latest.ts'
import { NeedsAuthFailure, callFailureOf } from './mcp-error.ts'
import { checkSchema } from './schema-check.ts'
import type { McpServer, ServerCall } from './server.ts'
import type { ToolDefinition } from './tool-definition.ts'
import { type CallResult, outcomeOf } from './tool-result.ts'

/** Which agent process began a call: a server does not tell a later one how it ended. */
const BOOT = `mcp-${randomUUID()}`
const PROGRESS_EVERY_MS = 50
/** The longest that any call may take. */
const MAX_MS = 300_000
const TITLE_CHARS = 120

/** `name`: what the model calls it. */
export function mcpTool(server: McpServer, definition: ToolDefinition, name: string): Tool {
  const { config } = server.spec
  const settings = config.toolSettings[definition.name] ?? {}
  const readOnly =
    config.readOnly === 'as-announced'
      ? definition.announcedReadOnly
      : config.readOnly.includes(definition.name)
  const timeoutMs = settings.timeoutMs ?? config.timeoutMs
  const maxTimeoutMs = Math.max(timeoutMs, config.maxTimeoutMs)
  const idempotent = settings.retries !== undefined && settings.retries > 0
  const title = `${server.name}: ${definition.title.replaceAll(/\s+/g, ' ').trim()}`.slice(0, TITLE_CHARS)
  return {
    id: toolId({ server: server.name, tool: definition.name }),
    name,
    description: definition.description,
    kind: 'other',
    input: inputOf(definition),
    readOnly,
    // Starting a server that rests is not the call's time.
    timeoutMs: Math.min(MAX_MS, maxTimeoutMs + config.startTimeoutMs),
    ...(settings.rateLimit === undefined ? {} : { rateLimit: settings.rateLimit }),
    ...(settings.cacheMs === undefined || !readOnly ? {} : { cache: { ttlMs: settings.cacheMs } }),
    ...(idempotent ? { idempotent: { retries: settings.retries ?? 0 } } : {}),
    title: () => title,
    async *execute(args, ctx) {
      if (ctx.resumed === undefined) yield { type: 'started', attempt: { n: 1, boot: BOOT } }
      else if (ctx.resumed.boot !== BOOT && !readOnly && !idempotent)
        throw new CallFailure(
          'unknown_effect',
          `The call of ${definition.name} was interrupted by a restart. Whether it had its effect is not known: look before you call it again.`,
        )
      return yield* run(server, definition, args, ctx, { timeoutMs, maxTimeoutMs })
    },
  }
}

function inputOf({ parameters, inputSchema }: ToolDefinition): JsonSchemaInput {
  return {
    parameters,
    check(args) {
      const check = checkSchema(inputSchema, args)
      // A schema that cannot be used is the server's; so is, then, the checking.
      return check.fits === 'no' ? check.problems : []
    },
  }
}

async function* run(
  server: McpServer,
  definition: ToolDefinition,
  args: Record<string, unknown>,
  ctx: ServerCall,
  limits: { timeoutMs: number; maxTimeoutMs: number },
): AsyncGenerator<ToolUpdate, ToolOutcome> {
  const reports = new Latest<{ message?: string; done: number; total?: number }>()
  let sent = false
  const answer = server
    .call(definition, args, ctx, {
      ...limits,
      onProgress: (report) => reports.set(report),
      onSent: () => {
        sent = true
      },
    })
    .finally(() => reports.end())
  // Thrown where it is awaited below, unless nobody waits any more.
  void Promise.allSettled([answer])
  for await (const { message = definition.title, done, total } of reports.values(PROGRESS_EVERY_MS)) {
    const said = message.slice(0, TITLE_CHARS)
    yield { type: 'progress', message: said, done, ...(total === undefined ? {} : { total }) }
  }
  let result: CallResult
  try {
    result = await answer
  } catch (error) {
    ctx.signal.throwIfAborted()
    const lost = server.lostBecause()
    const failure = callFailureOf(error, { server: server.name, tool: definition.name, sent, lost })
    if (failure instanceof NeedsAuthFailure) return needsAuthOutcome(failure)
    throw failure
  }
  return outcomeOf(result, {
    server: server.name,
    tool: definition.name,
    outputSchema: definition.outputSchema,
  })
}

/** The address is a link in the call's card: for the person, and not for the model. */
export function needsAuthOutcome({ message, server, url }: NeedsAuthFailure): ToolOutcome {
  const link = url !== undefined && /^https?:\/\//.test(url) ? url : undefined
  return {
    status: 'failed',
    reason: 'needs_auth',
    forModel: message,
    data: { server, ...(link === undefined ? {} : { connect: { url: link } }) },
    ...(link === undefined
      ? {}
      : {
          content: [
            { type: 'content', content: { type: 'resource_link', uri: link, name: `Connect ${server}` } },
          ],
        }),
  }
}
