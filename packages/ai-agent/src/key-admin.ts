/** What an operator does to keys by `./sandlot keys`, as a process in place of the agent. Prints one line of JSON. */
import { existsSync, mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { messageOf } from '@sandlot/shared/errors'
import { lockFile } from '@sandlot/storage/lock'
import { openSessionStore } from '@sandlot/storage/sessions/sqlite'
import { readAgentConfig } from './config.ts'
import { deploymentKeys } from './keys.ts'
import { type Rotated, rotateKeys } from './secrets/rotate-keys.ts'
import { builtinTools } from './tools/builtin/index.ts'

/** `rotate`. Each durable step is a line on stderr: whoever watches knows how far it is. */
async function main([act = '']: readonly string[]): Promise<Rotated> {
  if (act !== 'rotate') throw new Error(`There is nothing to do called "${act}".`)
  const { dataFolder, deployment } = readAgentConfig(builtinTools().map((tool) => tool.name))
  // Before the first start there is nothing, and nothing is made by asking.
  if (!existsSync(join(dataFolder, 'keys', 'deployment.json'))) return { resealed: 0, lost: [] }
  mkdirSync(join(dataFolder, 'run'), { recursive: true, mode: 0o770 })
  const lock = lockFile(join(dataFolder, 'run', 'agent.lock'))
  if (lock === undefined) throw new Error('Sandlot is running. Stop it with ./sandlot down first.')
  const store = await openSessionStore(join(dataFolder, 'sessions.db'))
  try {
    const rotating = rotateKeys(dataFolder, deploymentKeys(dataFolder, deployment).key, store.secrets)
    let next = await rotating.next()
    for (; next.done !== true; next = await rotating.next()) process.stderr.write(`${next.value}\n`)
    return next.value
  } finally {
    await store.close()
    lock.release()
  }
}

if (import.meta.main) {
  try {
    process.stdout.write(`${JSON.stringify(await main(process.argv.slice(2)))}\n`)
  } catch (error) {
    process.stderr.write(`${messageOf(error)}\n`)
    process.exitCode = 1
  }
}
