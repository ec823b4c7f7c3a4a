/** A server's tool as a `Tool`: the same for policies, scheduler and screen. */
import { randomUUID } from 'node:crypto'
import type { Question } from '@sandlot/shared/chat/question'
import {
  type ElicitationAnswer,
  elicitationAnswer,
  QUESTION_EXPIRES_MS,
  QUESTION_OPTIONS,
  questionOf,
} from './elicitation.ts'
import { callFailureOf, signInLink, NeedsAuthFailure } from './error.ts'
import { toolId } from './exposed-names.ts'
import type { ReadResult } from './read-result.ts'
import { outcomeOf } from './result.ts'
import type { McpServer } from './server.ts'
import type { ToolDefinition } from './tool-definition.ts'
import { visibleText } from './visible-text.ts'
import { LatestByKey } from '@sandlot/shared/async/latest-by-key'
import { orAborted } from '@sandlot/shared/async/or-aborted'
import { ToolError } from '../tools/tool-error.ts'
import type { JsonSchemaInput } from '../tools/tool-schema.ts'
import { hasAsked } from '../tools/has-asked.ts'
import type { CallContext, Tool, ToolOutcome, ToolUpdate } from '../tools/tool.ts'

/** Identifies the agent process that began a call, in the log. */
const BOOT = `mcp-${randomUUID()}`
const PROGRESS_EVERY_MS = 50
/** The longest that any call may take. */
const MAX_MS = 300_000
const TITLE_CHARS = 120

/** `name`: its name for the model. */
export function mcpTool(server: McpServer, definition: ToolDefinition, name: string): Tool {
  const { config, ruleId } = server.spec
  const settings = config.toolSettings[definition.name] ?? {}
  const changesNothing = server.spec.added?.chosen().readOnly ?? config.readOnly
  const readOnly =
    changesNothing === 'as-announced'
      ? definition.announcedReadOnly
      : changesNothing.includes(definition.name)
  const timeoutMs = settings.timeoutMs ?? config.timeoutMs
  const maxTimeoutMs = Math.max(timeoutMs, config.maxTimeoutMs)
  const idempotent = settings.retries !== undefined && settings.retries > 0
  const title = `${server.name}: ${definition.title.replaceAll(/\s+/g, ' ').trim()}`.slice(0, TITLE_CHARS)
  return {
    name,
    description: definition.description,
    kind: 'other',
    input: inputOf(server, definition),
    readOnly,
    runs: {
      as: {
        id: toolId({ server: server.name, tool: definition.name }),
        ruleId: ruleId === undefined ? undefined : toolId({ server: ruleId, tool: definition.name }),
      },
      // It logs an attempt before it calls the server.
      repeatable: true,
      // Starting a stopped server does not count as the call's time.
      timeoutMs: Math.min(MAX_MS, maxTimeoutMs + config.startTimeoutMs),
      rateLimit: settings.rateLimit,
      cache: settings.cacheMs === undefined || !readOnly ? undefined : { ttlMs: settings.cacheMs },
      idempotent: idempotent ? { retries: settings.retries ?? 0 } : undefined,
    },
    title: () => title,
    async *execute(args, ctx) {
      if (ctx.previous === undefined) yield { type: 'started', attempt: { n: 1, boot: BOOT } }
      // No server reports how an earlier call ended, not even to the same process.
      else if (!readOnly && !idempotent)
        throw new ToolError(
          'unknown_effect',
          `The call of ${definition.name} was interrupted before its end was known. Whether it had its effect is not known: look before you call it again.`,
        )
      return yield* run({ server, definition, readOnly }, args, ctx, { timeoutMs, maxTimeoutMs })
    },
  }
}

function inputOf(server: McpServer, { parameters, inputSchema }: ToolDefinition): JsonSchemaInput {
  return {
    parameters,
    passesNumbersOn: true,
    async check(args, userId) {
      const check = await server.checkSchema(inputSchema, args, userId)
      // When its schema cannot be used, the server validates the arguments itself.
      return check.fits === 'no' ? check.problems : []
    },
  }
}

async function* run(
  { server, definition, readOnly }: { server: McpServer; definition: ToolDefinition; readOnly: boolean },
  args: Record<string, unknown>,
  ctx: CallContext,
  limits: { timeoutMs: number; maxTimeoutMs: number },
): AsyncGenerator<ToolUpdate, ToolOutcome> {
  const reports = new LatestByKey<'progress', Report>()
  let sent = false
  let asking: Asking | undefined
  const answer = server
    .call(definition, args, ctx, {
      ...limits,
      onProgress: (report) => reports.set('progress', report),
      onSent: () => {
        sent = true
      },
      elicit: (asked) => {
        const question = questionOf(server.name, asked)
        // A call asks its user once: for approval, or this.
        if (question === undefined || asking !== undefined || hasAsked(ctx))
          return Promise.resolve({ action: 'decline' })
        asking = { question, schema: asked.schema, isAsked: false, answered: Promise.withResolvers() }
        reports.set('progress', { done: 0 })
        return asking.answered.promise
      },
    })
    .finally(() => reports.end({ discard: true }))
  // It is awaited below, unless the call is aborted.
  const over = Promise.allSettled([answer])
  for await (const report of reports.values(PROGRESS_EVERY_MS)) {
    if (asking !== undefined && !asking.isAsked) yield* askUser(asking, ctx, over)
    else yield progressOf(report, definition.title)
  }
  let result: ReadResult
  try {
    result = await answer
  } catch (error) {
    ctx.signal.throwIfAborted()
    const lost = server.lossReason()
    const failure = callFailureOf(error, { server: server.name, tool: definition.name, sent, lost })
    if (failure instanceof NeedsAuthFailure) return needsAuthOutcome(failure)
    throw failure
  }
  const { outputSchema: schema } = definition
  return outcomeOf(result, {
    server: server.name,
    tool: definition.name,
    changes: !readOnly,
    check: schema && ((value) => server.checkSchema(schema, value, ctx.ids.userId)),
  })
}

interface Report {
  message?: string
  done: number
  total?: number
}

function progressOf({ message, done, total }: Report, title: string): ToolUpdate {
  const said = visibleText(message ?? title).slice(0, TITLE_CHARS)
  return { type: 'progress', message: said, done, total }
}

interface Asking {
  question: Question
  /** In the server's form, with its defaults. */
  schema: unknown
  isAsked: boolean
  answered: PromiseWithResolvers<ElicitationAnswer>
}

/** Asks the server's question as one of the call, until it is answered or the call ends without. */
async function* askUser(
  asking: Asking,
  ctx: CallContext,
  over: Promise<unknown>,
): AsyncGenerator<ToolUpdate, void> {
  asking.isAsked = true
  const expiresAt = ctx.now() + QUESTION_EXPIRES_MS
  const { question, schema } = asking
  yield { type: 'approval_asked', options: [...QUESTION_OPTIONS], why: [], expiresAt, question }
  const waiting = ctx.ask().then((given) => elicitationAnswer(given, schema))
  const gaveUp = over.then(() => undefined)
  const answer = await orAborted(Promise.race([waiting, gaveUp]), ctx.signal)
  if (answer !== undefined) asking.answered.resolve(answer)
}

/** The link is in the call's card: the user sees it, the model does not. */
function needsAuthOutcome({ message, server, signIn }: NeedsAuthFailure): ToolOutcome {
  const { wanted } = signIn
  const link = signInLink(signIn)
  const name = wanted === undefined ? `Connect ${server}` : `Allow ${server}: ${wanted}`
  return {
    status: 'failed',
    reason: 'needs_auth',
    forModel: message,
    data: {
      server,
      connect: link === undefined ? undefined : { url: link, wanted },
    },
    ...(link === undefined
      ? {}
      : {
          content: [{ type: 'content', content: { type: 'resource_link', uri: link, name } }],
        }),
  }
}

export const CONNECT = 'connect'

export function connectTool(server: McpServer, name: string): Tool {
  return {
    name,
    description: `${hasLink(server) ? `Shows the user the link to connect ${server.name}` : `Says what the user has to do to connect ${server.name}`}. Its tools are there with the next message after the user has done that.`,
    kind: 'other',
    input: { parameters: { type: 'object', properties: {} }, check: () => Promise.resolve([]) },
    readOnly: true,
    runs: { as: { id: toolId({ server: server.name, tool: CONNECT }) } },
    title: () => `Connect ${server.name}`,
    // oxlint-disable-next-line require-yield
    async *execute(_args, ctx) {
      const now = await server.offered(ctx.signal)
      if (now.state === 'ready')
        return {
          status: 'completed',
          forModel: `${server.name} is connected. Its tools are there with the user’s next message.`,
        }
      if (now.state === 'unavailable')
        throw new ToolError('unavailable', `${server.name} cannot be used now: ${now.why}.`)
      return needsAuthOutcome(new NeedsAuthFailure(server.name, now.signIn, {}))
    },
  }
}

/** For a client's server this is known only after its sign-in was looked up. */
function hasLink({ spec, last }: McpServer): boolean {
  return (
    spec.signInHint === undefined || (last?.state === 'needs_auth' && signInLink(last.signIn) !== undefined)
  )
}
