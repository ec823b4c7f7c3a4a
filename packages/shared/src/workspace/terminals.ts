/**
 * A user's terminals in their sandbox: `GET /api/terminals`, `POST /api/terminals`, `DELETE
 * /api/terminals/:id`, and one of them as a WebSocket at `/api/terminals/:id`. Binary messages are
 * bytes of keys and screen; text messages are `terminalAsk` and `terminalNotice` as JSON.
 */
import { z } from 'zod'
import { agentUser } from '../account/agent-user.ts'

/** Open terminals of one user. */
export const MAX_TERMINALS = 16
/** Unacknowledged bytes that a terminal may send. */
export const TERMINAL_WINDOW_BYTES = 512 * 1024

const cells = z.int().min(1).max(1_000)
/** In characters. */
const size = { columns: cells, rows: cells }
/** A sandbox command's id. */
export const terminalId = z.string().regex(/^[0-9a-f]{32}$/, 'a terminal’s id is 32 hexadecimal digits')

/** `POST /api/terminals` → 201 with a `Terminal`. */
export const openTerminalRequest = z.strictObject(size)

const terminal = z.object({
  id: terminalId,
  /** Epoch milliseconds. */
  startedAt: z.number(),
  /** A page shows it now. */
  watched: z.boolean(),
})
export type Terminal = z.infer<typeof terminal>
export const openedTerminal = terminal
/** Oldest first. */
export const terminalList = z.object({ terminals: z.array(terminal) })

/** Client → terminal. `ack`: everything before this offset is on the screen. */
export const terminalAsk = z.discriminatedUnion('type', [
  z.object({ type: z.literal('resize'), ...size }),
  z.object({ type: z.literal('ack'), offset: z.number().nonnegative() }),
])
export type TerminalAsk = z.infer<typeof terminalAsk>

/**
 * Terminal → client. `ready` comes first: the following bytes begin at `offset`, which is later
 * than requested if older output is no longer stored; the screen is then reset. After `ended` the
 * socket closes.
 */
export const terminalNotice = z.discriminatedUnion('type', [
  z.object({ type: z.literal('ready'), offset: z.number() }),
  z.object({
    type: z.literal('ended'),
    /** Absent: the sandbox was removed. */
    exitCode: z.number().optional(),
    signal: z.string().optional(),
  }),
])
export type TerminalNotice = z.infer<typeof terminalNotice>

/** Close code: another page took over this terminal. */
export const TERMINAL_TAKEN = 4010

/** `EXT.terminals`: answered with a `TerminalList`, a `Terminal`, a `streamTicket`, `{}`. */
export const terminalsParams = z.object({
  user: agentUser,
  ask: z.discriminatedUnion('do', [
    z.object({ do: z.literal('list') }),
    z.object({ do: z.literal('open'), ...size }),
    /** `from`: the offset of the first byte that the client lacks. */
    z.object({ do: z.literal('attach'), id: terminalId, from: z.number().nonnegative() }),
    z.object({ do: z.literal('close'), id: terminalId }),
  ]),
})
export type TerminalsAsk = z.infer<typeof terminalsParams>['ask']
