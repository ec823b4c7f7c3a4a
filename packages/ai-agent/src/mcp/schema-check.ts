/**
 * Validates a value against a JSON Schema that a server wrote: nothing is compiled, and the time is
 * limited.
 */
import vm from 'node:vm'
import { CfWorkerJsonSchemaValidator } from '@modelcontextprotocol/client/validators/cf-worker'
import { nearest } from '@sandlot/shared/config/names'
import { messageOf } from '@sandlot/shared/errors'
import { propertiesOf } from '../tools/tool-schema.ts'

/** Of the processor: on a busy machine a check may wait for it. */
const CHECK_MS = 200
/** Until then the work is begun again where it got less of the processor. */
const WAIT_MS = 1_600
const SHOWN_CHARS = 300
const SHOWN_PROBLEMS = 20

type SchemaCheck =
  | { fits: 'yes' }
  | { fits: 'no'; problems: string[] }
  /** The schema is broken, in an unknown dialect, or takes too long. */
  | { fits: 'unknown'; why: string; timedOut: boolean }

type Schema = Record<string, unknown>

export function checkSchema(schema: Schema, value: unknown): SchemaCheck {
  try {
    return runWithinBudget(() => {
      const validator = new CfWorkerJsonSchemaValidator({ shortcircuit: false })
      const result = validator.getValidator(schema)(value)
      if (result.valid) return { fits: 'yes' }
      return { fits: 'no', problems: problemsOf(result.errorMessage, schema, value) }
    })
  } catch (error) {
    return {
      fits: 'unknown',
      why: messageOf(error).slice(0, SHOWN_CHARS),
      timedOut: error instanceof TimeoutError,
    }
  }
}

/** The validator reports every place on the path to a problem; only the problems are kept. */
const ON_THE_WAY = /does not match (?:additional properties )?schema\.$|A subschema had errors\.$/

function problemsOf(message: string, schema: Schema, value: unknown): string[] {
  const known = Object.keys(propertiesOf(schema))
  const unknown = schema['additionalProperties'] === false ? unknownNames(value, known) : []
  const found = message
    .split('; ')
    .filter((line) => !ON_THE_WAY.test(line) && !/^#\/[^/]*: False boolean schema\.$/.test(line))
    .map((line) => line.replace(/^#\/?/, '').replace(/^: /, '').slice(0, SHOWN_CHARS))
  const problems = [...unknown, ...found]
  return problems.length === 0 ? ['it does not match the schema'] : problems.slice(0, SHOWN_PROBLEMS)
}

function unknownNames(value: unknown, known: readonly string[]): string[] {
  if (typeof value !== 'object' || value === null) return []
  return Object.keys(value)
    .filter((key) => !known.includes(key))
    .map((key) => {
      const shown = key.slice(0, 100)
      const meant = nearest(shown, known)
      return `there is no argument ${JSON.stringify(shown)}${meant === undefined ? '' : `; did you mean ${meant}?`}`
    })
}

/** The work was terminated at its time limit. */
class TimeoutError extends Error {
  override readonly name = 'TookTooLong'
}

const context = vm.createContext(
  { work: undefined },
  { name: 'bounded', codeGeneration: { strings: false, wasm: false } },
)
const script = new vm.Script('work()')

/** Throws `TimeoutError` as `runWithTimeout` does, where the work had the time of a check. */
function runWithinBudget<T>(work: () => T): T {
  for (let ms = CHECK_MS; ; ms *= 2) {
    const before = process.threadCpuUsage()
    try {
      return runWithTimeout(ms, work)
    } catch (error) {
      const { user, system } = process.threadCpuUsage(before)
      const hadItsTime = (user + system) / 1_000 >= CHECK_MS || ms >= WAIT_MS
      if (hadItsTime || !(error instanceof TimeoutError)) throw error
    }
  }
}

/**
 * Returns what `work` returns, or throws what it throws. The work is not isolated: the engine
 * checks the clock, also inside a regular expression. Throws `TimeoutError`.
 */
function runWithTimeout<T>(ms: number, work: () => T): T {
  let result: { value: T } | undefined
  context['work'] = (): void => {
    result = { value: work() }
  }
  try {
    script.runInContext(context, { timeout: ms })
  } catch (error) {
    // Not `instanceof`: the error belongs to the other context.
    const timedOut =
      typeof error === 'object' &&
      error !== null &&
      'code' in error &&
      error.code === 'ERR_SCRIPT_EXECUTION_TIMEOUT'
    if (timedOut) throw new TimeoutError(`it took more than ${ms} ms`)
    throw error
  } finally {
    context['work'] = undefined
  }
  if (result === undefined) throw new TimeoutError('it did not end')
  return result.value
}
