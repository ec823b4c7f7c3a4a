/** `./sandlot keys`, as a process that runs in place of the agent. Prints one line of JSON. */
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { messageOf } from '@sandlot/shared/base/errors'
import { printOf } from '@sandlot/shared/node/secret-file'
import { openSessionStore } from '@sandlot/storage/store/open'
import { readAgentConfig } from '../config/config.ts'
import { deploymentKeys } from '@sandlot/shared/node/deployment-keys'
import { type Rotated, rotateKeys } from '../people/sealing-keys.ts'
import { builtinTools } from '../tools/builtin/index.ts'
import { whileNoAgentRuns } from './while-no-agent-runs.ts'

/** `folder`: absolute; the data folder that was looked at. `agents`: those of several that run. */
type Answer =
  | ({ rotated: true } & Rotated)
  | { rotated: false; reason: 'no_deployment' | 'running'; folder: string; agents?: string[] }

/** Exit code where nothing was changed; the reason is in the answer. */
const NOTHING_CHANGED = 3

/** `rotate`. Each durable step is a line on stderr, which shows the progress. */
async function main([act = '']: readonly string[]): Promise<Answer> {
  if (act !== 'rotate') throw new Error(`There is nothing to do called "${act}".`)
  const { dataFolder, keysFolder, database, deployment, sessionsMode } = readAgentConfig(
    builtinTools().map((tool) => tool.name),
  )
  // Before the first start, or with another SANDLOT_DATA than Sandlot's: nothing is made by asking.
  if (!existsSync(join(keysFolder, 'deployment.json')))
    return { rotated: false, reason: 'no_deployment', folder: dataFolder }
  const open = () => openSessionStore(database, { mode: sessionsMode })
  const rotated = await whileNoAgentRuns(dataFolder, open, async ({ people: { secrets }, replicas }) => {
    const { key } = deploymentKeys(keysFolder, deployment)
    const rotating = rotateKeys(keysFolder, key, secrets, ([first]) =>
      replicas.changeKey('sealing_key', printOf(first)),
    )
    let next = await rotating.next()
    for (; next.done !== true; next = await rotating.next()) process.stderr.write(`${next.value}\n`)
    return next.value
  })
  if ('result' in rotated) return { rotated: true, ...rotated.result }
  const agents = rotated.running.length === 0 ? {} : { agents: rotated.running }
  return { rotated: false, reason: 'running', folder: dataFolder, ...agents }
}

if (import.meta.main) {
  try {
    const answer = await main(process.argv.slice(2))
    process.stdout.write(`${JSON.stringify(answer)}\n`)
    if (!answer.rotated) process.exitCode = NOTHING_CHANGED
  } catch (error) {
    process.stderr.write(`${messageOf(error)}\n`)
    process.exitCode = 1
  }
}
