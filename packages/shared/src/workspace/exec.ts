/**
 * `POST /api/exec`: one command in a person's sandbox, without a model. And how it travels from the
 * agent to the service: a byte stream, whose text messages are `execNotice` and `execAsk` as JSON.
 */
import { z } from 'zod'
import { agentUser } from '../account/agent-user.ts'
import { toolResult } from '../account/api.ts'
import { ERROR_CODES } from '../base/errors.ts'
import { mode } from '../chat/mode.ts'
import { WITHOUT_NUL } from '../base/storable-text.ts'

/** The kernel takes no longer one as an argument of bash. */
const MAX_COMMAND_BYTES = 128 * 1024 - 1
/** Bytes of each stream in the JSON answer. */
export const MAX_EXEC_TEXT_BYTES = 1024 * 1024
/** Bytes of stdin that are sent ahead of what the command has taken. */
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
  /** For this command. */
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
  /** Then the command is ended. */
  timeoutMs: z.int().min(1_000).max(300_000).default(120_000),
  /** As of `POST /api/chat`. */
  mode: mode.optional(),
}

/** `POST /api/exec`, or without `stdin` the header `Sandlot-Exec` beside stdin as the body. */
export const execRequest = z.strictObject({ ...asked, stdin: z.string().optional() })

/** How it ended, and what it used, measured in the sandbox. */
const execEnd = toolResult.omit({ outputUrl: true, truncated: true }).extend({
  /** Null: it did not exit by itself. */
  exitCode: z.int().nullable(),
  signal: z.string().nullable(),
  /** Of stdout and stderr. */
  bytes: z.object({ stdout: z.number(), stderr: z.number() }),
  durationMs: z.number(),
  userMs: z.number(),
  systemMs: z.number(),
  maxRssKb: z.number(),
})
export type ExecEnd = z.infer<typeof execEnd>

/** `POST /api/exec` → this. `truncated`: `stdout` or `stderr` is only the beginning. */
const execResponse = execEnd.extend({
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
  /** Where `mode` is absent, lowered to the ceiling. */
  defaultMode: mode.optional(),
  /** One output for stdout and stderr. */
  merge: z.boolean(),
})

/** First byte of the agent's binary messages, before the output. Those of the service are stdin. */
export const EXEC_STREAM = { stdout: 1, stderr: 2 } as const

/**
 * Agent → service. First `started`, or `refused` and nothing more; last `ended`. `taken`: bytes of
 * stdin so far.
 */
export const execNotice = z.discriminatedUnion('type', [
  z.object({ type: z.literal('refused'), code: z.enum(ERROR_CODES), message: z.string() }),
  z.object({ type: z.literal('started') }),
  z.object({ type: z.literal('taken'), bytes: z.number() }),
  z.object({ type: z.literal('ended'), end: execEnd }),
])
export type ExecNotice = z.infer<typeof execNotice>

/** Service → agent: stdin is at its end. Its close cancels the command. */
export const END_OF_STDIN = 'eof'
