/**
 * What was used up, as pages and programs read it: `GET /api/usage` (one's own) and
 * `GET /api/admin/usage`. Days are UTC, as limits are. Unknown cost is null, never zero.
 */
import { z } from 'zod'

const count = z.int().nonnegative()

/** A sum of answers of models. */
const countedUsage = z.object({
  answers: count,
  /** Calls that they made, also those that were refused. */
  calls: count,
  /** Tokens; of unreported ones none. `cached` is part of `input`, `reasoning` of `output`. */
  input: count,
  output: count,
  cached: count,
  reasoning: count,
  /** US dollars of the answers whose cost is known; null: of none it is. */
  cost: z.number().nonnegative().nullable(),
  /** Answers of unknown cost. */
  unpriced: count,
})
export type CountedUsage = z.infer<typeof countedUsage>

/** A sum of calls of a tool that have ended. */
const countedTool = z.object({
  calls: count,
  failed: count,
  runMs: count,
  /** For approvals and in queues. */
  waitMs: count,
  /** Bytes, also those that were not stored. */
  outputBytes: count,
})
export type CountedTool = z.infer<typeof countedTool>
