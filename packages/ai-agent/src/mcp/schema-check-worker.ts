/**
 * The other side of schema-check.ts: a schema that never ends holds up only this thread, which can
 * be ended. Nothing is compiled.
 */
import { parentPort } from 'node:worker_threads'
import { CfWorkerJsonSchemaValidator } from '@modelcontextprotocol/client/validators/cf-worker'
import type { CheckAnswer, CheckJob } from './schema-check.ts'

/** More than a model is shown. */
const MOST_PROBLEMS = 200
const SHOWN_CHARS = 300
/** The validator reports every place on the path to a problem; only the problems are kept. */
const ON_THE_WAY = /does not match (?:additional properties )?schema\.$|A subschema had errors\.$/

parentPort?.on('message', (job: CheckJob) => parentPort?.postMessage(answerTo(job)))
parentPort?.postMessage('loaded')

function answerTo({ schema, value }: CheckJob): CheckAnswer {
  try {
    const validator = new CfWorkerJsonSchemaValidator({ shortcircuit: false })
    const result = validator.getValidator(schema)(value)
    if (result.valid) return { fits: true, problems: [] }
    const found = result.errorMessage.split('; ').filter((line) => !ON_THE_WAY.test(line))
    return { fits: false, problems: found.slice(0, MOST_PROBLEMS) }
  } catch (error) {
    return { why: (error instanceof Error ? error.message : String(error)).slice(0, SHOWN_CHARS) }
  }
}
