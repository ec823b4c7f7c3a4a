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
  const open = () => openSessionStore(config.database, { mode: config.sessionsMode })
  if (act === 'purge') {
    const purge = (store: SessionStore) => withBackend(config, store, ({ options }) => purgeAll(options))
    const purged = await whileNoAgentRuns(config.dataFolder, open, purge)
    if ('result' in purged) return purged.result
    const running = purged.running.length === 0 ? '' : ` (${purged.running.join(', ')})`
    throw new Error(`Sandlot is running${running}. Stop it with ./sandlot down first.`)
  }
  const store = await open()
  try {
    if (act === 'agents')
      return (await store.replicas.list()).filter(({ living }) => living).map(({ id }) => id)
    return await withBackend(config, store, async ({ reads, options }) => {
      if (act === 'list') return listWorkspaces(reads)
      if (act === 'ownerless') return (await ownerlessVolumes(reads)).map(({ name }) => name)
      if (act === 'prune') return pruneVolumes(names, options)
      throw new Error(`There is nothing to do called "${act}".`)
    })
  } finally {
    await store.close()
  }
}

interface Tools {
  reads: Pick<RemovalOptions, 'backend' | 'ledger'>
  options: RemovalOptions
}

async function withBackend<T>(
  config: AgentConfig,
  { ledger }: SessionStore,
  work: (tools: Tools) => Promise<T>,
): Promise<T> {
  const keys = deploymentKeys(config.keysFolder, config.deployment)
  const backend = createBackend(config, keys)
  const { images, limits, runtime } = config.sandbox
  const { image } = images
  const own = { backend, ledger, deploymentId: keys.id, deploymentKey: keys.key, image, limits }
  try {
    return await work({ reads: { backend, ledger }, options: { ...own, runtime, log: warn } })
  } finally {
    await backend.inventory.close()
  }
}

/** On stderr, which the launcher keeps in a log: stdout is the answer. */
const warn: RemovalOptions['log'] = (message, { slot, error }) =>
  void process.stderr.write(`Slot ${slot}: ${message}: ${messageOf(error)}\n`)

if (import.meta.main) {
  try {
    process.stdout.write(`${JSON.stringify(await main(process.argv.slice(2)))}\n`)
  } catch (error) {
    process.stderr.write(`${messageOf(error)}\n`)
    process.exitCode = 1
  }
}
