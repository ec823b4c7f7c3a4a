/** Serves MCP on stdin and stdout. The only file here that imports the MCP library. */
import { McpServer, type CallToolResult } from '@modelcontextprotocol/server'
import { serveStdio } from '@modelcontextprotocol/server/stdio'
import { messageOf } from '@sandlot/shared/base/errors'
import type { z } from 'zod'
import type { Log } from './log.ts'
import { ToolFailure } from './tool-failure.ts'

/** In `_meta` of a request of our own client: its user, for limits and caches. */
const USER_META = 'sandlot/user'
/** In `_meta` of a failed result: `{code, retryAfterSeconds?}`. */
const FAILURE_META = 'sandlot/failure'

/** The user of other clients. */
const ONE_USER = 'local'
const MAX_USER_CHARS = 200

interface Caller {
  userId: string
  signal: AbortSignal
}

/** Result of a tool. `notice`, for the model: omissions, and the way to get them. */
interface Found<O> {
  value: O
  notice?: string
  cached: boolean
}

export interface ServedTool<I extends z.ZodObject, O extends z.ZodObject> {
  name: string
  title: string
  description: string
  input: I
  output: O
  /** Throws `ToolFailure`; anything else is a bug. */
  run(args: z.output<I>, caller: Caller): Promise<Found<z.output<O>>>
}

interface ServerAbout {
  name: string
  version: string
}

/** Serves a read-only tool until stdin ends. */
export function serveTool<I extends z.ZodObject, O extends z.ZodObject>(
  { name, version }: ServerAbout,
  tool: ServedTool<I, O>,
  log: Log,
): void {
  exitWithoutSecrets(log)
  // The library's types require a concrete schema.
  const inputSchema: z.ZodObject = tool.input
  const outputSchema: z.ZodObject = tool.output
  serveStdio(
    () => {
      const server = new McpServer({ name, version }, { capabilities: { tools: {} } })
      server.registerTool(
        tool.name,
        {
          title: tool.title,
          description: tool.description,
          inputSchema,
          outputSchema,
          annotations: { readOnlyHint: true, openWorldHint: true },
        },
        // The library has checked the arguments by `input`.
        (args, { mcpReq }) =>
          answer(tool, args as z.output<I>, { userId: userOf(mcpReq._meta), signal: mcpReq.signal }, log),
      )
      return server
    },
    { onerror: (error) => log.warn({ error: error.message }, 'message not handled') },
  )
  log.info({ tool: tool.name, version }, 'ready')
}

async function answer<I extends z.ZodObject, O extends z.ZodObject>(
  tool: ServedTool<I, O>,
  args: z.output<I>,
  caller: Caller,
  log: Log,
): Promise<CallToolResult> {
  const began = performance.now()
  // Never the arguments or results.
  const note = (outcome: string, cached: boolean): void =>
    log.info({ tool: tool.name, outcome, cached, ms: Math.round(performance.now() - began) }, 'lookup ended')
  try {
    const { value, notice, cached } = await tool.run(args, caller)
    note('completed', cached)
    const notices = notice === undefined ? [] : [{ type: 'text' as const, text: notice }]
    return { content: [{ type: 'text', text: JSON.stringify(value) }, ...notices], structuredContent: value }
  } catch (thrown) {
    const failure = thrown instanceof ToolFailure ? thrown : bug(thrown, log)
    note(failure.code, false)
    const { code, retryAfterSeconds } = failure
    return {
      isError: true,
      content: [{ type: 'text', text: log.scrub(failure.message) }],
      _meta: { [FAILURE_META]: { code, retryAfterSeconds } },
    }
  }
}

function bug(thrown: unknown, log: Log): ToolFailure {
  log.warn({ error: messageOf(thrown) }, 'lookup failed')
  return new ToolFailure('unavailable', 'The lookup failed; see the server’s log.', {
    cause: thrown,
  })
}

function userOf(meta: Record<string, unknown> | undefined): string {
  const user = meta?.[USER_META]
  return typeof user === 'string' && user !== '' ? user.slice(0, MAX_USER_CHARS) : ONE_USER
}

/** Node would print the whole error, with a request that has credentials. */
function exitWithoutSecrets(log: Log): void {
  const exit = (error: unknown): never => {
    log.warn({ error: messageOf(error) }, 'the server crashed')
    process.exit(1)
  }
  process.on('uncaughtException', exit)
  process.on('unhandledRejection', exit)
}
