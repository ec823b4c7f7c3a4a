/**
 * `POST /api/exec`: one command in a user's sandbox, without a model, and its transport from the
 * agent to the service: a byte stream with `execNotice` and `execAsk` as JSON text messages.
 */
import { z } from 'zod'
import { agentUser } from '../account/agent-user.ts'
import { toolResult } from '../chat/chat-api.ts'
import { ERROR_CODES } from '../base/errors.ts'
import { mode } from '../chat/mode.ts'
import { WITHOUT_NUL } from '../base/storable-text.ts'

/** The kernel's limit for one argument of bash. */
const MAX_COMMAND_BYTES = 128 * 1024 - 1
/** Bytes of each stream in the JSON answer. */
export const MAX_EXEC_TEXT_BYTES = 1024 * 1024
/** Bytes of stdin that are sent before the command has read them. */
export const EXEC_WINDOW_BYTES = 1024 * 1024

const asked = {
  /** For bash. */
  command: z
    .string()
    .min(1, 'must not be empty')
    .regex(WITHOUT_NUL, 'must not have a NUL character')
    .refine(
      (command) => new TextEncoder().encode(command).length <= MAX_COMMAND_BYTES,
      `has at most ${MAX_COMMAND_BYTES} bytes; send a longer script as stdin of the command “bash -s”`,
    ),
  /** Relative to the workspace, or absolute below it. Default: the workspace. */
  cwd: z.string().max(4096).regex(WITHOUT_NUL, 'must not have a NUL character').optional(),
  /** For this command only. */
  env: z
    .record(
      z.string().regex(/^[A-Za-z_][A-Za-z0-9_]{0,255}$/),
      z
        .string()
        .max(64 * 1024)
        .regex(WITHOUT_NUL, 'must not have a NUL character'),
    )
    .refine((env) => Object.keys(env).length <= 256, 'has at most 256 variables')
    .optional(),
  /** The command is ended after this time. */
  timeoutMs: z.int().min(1_000).max(300_000).default(120_000),
  /** See `POST /api/chat`. */
  mode: mode.optional(),
}

/** `POST /api/exec`, or without `stdin` the header `Sandlot-Exec` with stdin as the body. */
export const execRequest = z.strictObject({ ...asked, stdin: z.string().optional() })

/** Exit and resource use, measured in the sandbox. */
const execEnd = toolResult.omit({ outputUrl: true, truncated: true }).extend({
  /** Null: it did not exit by itself. */
  exitCode: z.int().nullable(),
  signal: z.string().nullable(),
  /** Sizes of both streams. */
  bytes: z.object({ stdout: z.number(), stderr: z.number() }),
  durationMs: z.number(),
  userMs: z.number(),
  systemMs: z.number(),
  maxRssKb: z.number(),
})
export type ExecEnd = z.infer<typeof execEnd>

/** `POST /api/exec` → this. `truncated`: `stdout` or `stderr` is only the beginning. */
export const execResponse = execEnd.extend({
  stdout: z.string(),
  stderr: z.string(),
  truncated: z.boolean(),
})
export type ExecResponse = z.infer<typeof execResponse>

// ── Between the service and the agent
// ───────────────────────────────────────────────────────────────────────────

/** `EXT.exec`: answered with a `streamTicket`. */
export const execParams = z.object({
  user: agentUser,
  ...asked,
  /** Used without `mode`, lowered to the ceiling. */
  defaultMode: mode.optional(),
  /** One output for stdout and stderr. */
  merge: z.boolean(),
})

/** First byte of the agent's binary messages, before the output. Those of the service are stdin. */
export const EXEC_STREAM = { stdout: 1, stderr: 2 } as const

/**
 * Agent → service. First `started`, or only `refused`; last `ended`. `taken`: bytes of stdin so
 * far.
 */
export const execNotice = z.discriminatedUnion('type', [
  z.object({ type: z.literal('refused'), code: z.enum(ERROR_CODES), message: z.string() }),
  z.object({ type: z.literal('started') }),
  z.object({ type: z.literal('taken'), bytes: z.number() }),
  z.object({ type: z.literal('ended'), end: execEnd }),
])
export type ExecNotice = z.infer<typeof execNotice>

/** Service → agent: end of stdin. Closing the stream cancels the command. */
export const END_OF_STDIN = 'eof'
