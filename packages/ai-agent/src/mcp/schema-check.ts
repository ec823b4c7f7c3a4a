/**
 * Validates values against JSON Schemas that servers wrote, in a pool of threads: such a schema may
 * take for ever, and everybody's chats share this one.
 */
import { messageOf } from '@sandlot/shared/base/errors'
import type { Schema } from './schema-dialects.ts'
import { isObject } from '../model/json.ts'
import { propertiesOf, unknownText } from '../tools/tool-schema.ts'
import { JobTooSlowError, WorkerPool } from '../tools/worker-pool.ts'

/** Milliseconds of the processor for one check. */
const CHECK_MS = 100
const THREADS = 2
const MAX_HEAP_MB = 128
const SHOWN_CHARS = 300
const SHOWN_PROBLEMS = 20

export interface CheckJob {
  schema: Schema
  value: unknown
}

/** `problems`: what the validator said. `why`: the schema cannot be used. */
export type CheckAnswer = { fits: boolean; problems: string[] } | { why: string }

export type SchemaCheck =
  | { fits: 'yes' }
  | { fits: 'no'; problems: string[] }
  /** The schema is broken, in an unknown dialect, or takes too long. */
  | { fits: 'unknown'; why: string; timedOut: boolean }

const SCRIPT = new URL(
  import.meta.url.endsWith('.ts') ? './schema-check-worker.ts' : './schema-check-worker.js',
  import.meta.url,
)
const pool = new WorkerPool<CheckJob, CheckAnswer>({
  script: SCRIPT,
  threads: THREADS,
  maxHeapMb: MAX_HEAP_MB,
})

/** Never rejects. `cpuMs`: time of the processor. */
export async function checkSchema(schema: Schema, value: unknown): Promise<SchemaCheck & { cpuMs: number }> {
  try {
    const { answer, cpuMs } = await pool.run({ schema, value }, { cpuMs: CHECK_MS })
    if ('why' in answer) return { fits: 'unknown', why: answer.why, timedOut: false, cpuMs }
    if (answer.fits) return { fits: 'yes', cpuMs }
    return { fits: 'no', problems: problemsOf(answer.problems, schema, value), cpuMs }
  } catch (error) {
    // Its thread was ended: it took too much time, or memory.
    const cpuMs = error instanceof JobTooSlowError ? error.cpuMs : CHECK_MS
    return { fits: 'unknown', why: messageOf(error).slice(0, SHOWN_CHARS), timedOut: true, cpuMs }
  }
}

function problemsOf(found: readonly string[], schema: Schema, value: unknown): string[] {
  const known = Object.keys(propertiesOf(schema))
  const unknown = schema['additionalProperties'] === false ? unknownNames(value, known) : []
  const others = found
    .filter((line) => !/^#\/[^/]*: False boolean schema\.$/.test(line))
    .map((line) => line.replace(/^#\/?/, '').replace(/^: /, '').slice(0, SHOWN_CHARS))
  const problems = [...unknown, ...others]
  return problems.length === 0 ? ['it does not match the schema'] : problems.slice(0, SHOWN_PROBLEMS)
}

function unknownNames(value: unknown, known: readonly string[]): string[] {
  const unknown = isObject(value) ? Object.keys(value).filter((key) => !known.includes(key)) : []
  return unknown.slice(0, SHOWN_PROBLEMS).map((key) => unknownText(key, known))
}
