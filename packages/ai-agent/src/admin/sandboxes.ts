/**
 * What an operator does to sandboxes by `./sandlot sandbox` and `./sandlot down --purge`, as a
 * process beside the agent: it alone may read the ledger. Prints one line of JSON.
 */
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import {
  listWorkspaces,
  ownerlessVolumes,
  pruneVolumes,
  purgeAll,
  type RemovalOptions,
} from '@sandlot/sandbox/controller/workspaces'
import { messageOf } from '@sandlot/shared/errors'
import { openSessionStore } from '@sandlot/storage/sessions/open'
import type { SessionStore } from '@sandlot/storage/sessions/store'
import { type AgentConfig, readAgentConfig } from '../config.ts'
import { deploymentKeys } from '../secrets/keys.ts'
import { createBackend } from '../sandbox-backend.ts'
import { builtinTools } from '../tools/builtin/index.ts'
import { whileNoAgentRuns } from './while-no-agent-runs.ts'

/**
 * `list`, `ownerless`, `prune <volume…>`, `purge`, or `agents`: which of several live. What it
 * answers is what the launcher reads.
 */
async function main([act = '', ...names]: readonly string[]): Promise<unknown> {
  const config = readAgentConfig(builtinTools().map((tool) => tool.name))
  // Before the first start there is nothing, and nothing is made by asking.
  if (!existsSync(join(config.keysFolder, 'deployment.json')))
    return act === 'purge' ? { containers: 0, volumes: 0 } : []
  return withStore(config, async ({ ledger, replicas }) => {
    if (act === 'agents') return (await replicas.list()).filter(({ living }) => living).map(({ id }) => id)
    const keys = deploymentKeys(config.keysFolder, config.deployment)
    const backend = createBackend(config, keys)
    const { images, limits, runtime } = config.sandbox
    const { image } = images
    const own = { backend, ledger, deploymentId: keys.id, deploymentKey: keys.key, image, limits }
    const options = { ...own, runtime, log: warn }
    try {
      if (act === 'list') return await listWorkspaces({ backend, ledger })
      if (act === 'ownerless') return (await ownerlessVolumes({ backend, ledger })).map(({ name }) => name)
      if (act === 'prune') return await pruneVolumes(names, options)
      if (act === 'purge') {
        const purged = await whileNoAgentRuns(config.dataFolder, replicas, () => purgeAll(options))
        if ('result' in purged) return purged.result
        const names = purged.running.length === 0 ? '' : ` (${purged.running.join(', ')})`
        throw new Error(`Sandlot is running${names}. Stop it with ./sandlot down first.`)
      }
      throw new Error(`There is nothing to do called "${act}".`)
    } finally {
      await backend.inventory.close()
    }
  })
}

/** On stderr, which the launcher keeps in a log: stdout is the answer. */
const warn: RemovalOptions['log'] = (message, { slot, error }) =>
  void process.stderr.write(`Slot ${slot}: ${message}: ${messageOf(error)}\n`)

async function withStore<T>(config: AgentConfig, work: (store: SessionStore) => Promise<T>): Promise<T> {
  const store = await openSessionStore(config.database, { mode: config.sessionsMode })
  try {
    return await work(store)
  } finally {
    await store.close()
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
