/** Whether a value fits a JSON Schema that a server wrote. Nothing is compiled from it, and it gets a moment only. */
import vm from 'node:vm'
import { CfWorkerJsonSchemaValidator } from '@modelcontextprotocol/client/validators/cf-worker'
import { nearest } from '@sandlot/shared/config-names'
import { messageOf } from '@sandlot/shared/errors'
import { propertiesOf } from '../tools/tool-input.ts'

const CHECK_MS = 200
const SHOWN_CHARS = 300
const SHOWN_PROBLEMS = 20

export type SchemaCheck =
  | { fits: 'yes' }
  | { fits: 'no'; problems: string[] }
  /** The schema is broken, in a dialect that we do not know, or takes for ever. */
  | { fits: 'unknown'; why: string; tookTooLong: boolean }

type Schema = Record<string, unknown>

export function checkSchema(schema: Schema, value: unknown): SchemaCheck {
  try {
    return withinTime(CHECK_MS, () => {
      const validator = new CfWorkerJsonSchemaValidator({ shortcircuit: false })
      const result = validator.getValidator(schema)(value)
      if (result.valid) return { fits: 'yes' }
      return { fits: 'no', problems: problemsOf(result.errorMessage, schema, value) }
    })
  } catch (error) {
    return {
      fits: 'unknown',
      why: messageOf(error).slice(0, SHOWN_CHARS),
      tookTooLong: error instanceof TookTooLong,
    }
  }
}

/** The validator names every place on the way to a problem; only the problems themselves are kept. */
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

/** It did not end in time and was ended. */
export class TookTooLong extends Error {
  override readonly name = 'TookTooLong'
}

const context = vm.createContext(
  { work: undefined },
  { name: 'bounded', codeGeneration: { strings: false, wasm: false } },
)
const script = new vm.Script('work()')

/**
 * What `work` returns or throws. It is not isolated, only ended: the engine looks at the clock, also inside a regular
 * expression. @throws TookTooLong
 */
export function withinTime<T>(ms: number, work: () => T): T {
  let result: { value: T } | undefined
  context['work'] = (): void => {
    result = { value: work() }
  }
  try {
    script.runInContext(context, { timeout: ms })
  } catch (error) {
    // Not `instanceof`: the error is of the context that was ended.
    const timedOut =
      typeof error === 'object' &&
      error !== null &&
      'code' in error &&
      error.code === 'ERR_SCRIPT_EXECUTION_TIMEOUT'
    if (timedOut) throw new TookTooLong(`it took more than ${ms} ms`)
    throw error
  } finally {
    context['work'] = undefined
  }
  if (result === undefined) throw new TookTooLong('it did not end')
  return result.value
}
