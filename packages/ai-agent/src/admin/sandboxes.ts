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
import { lockFile } from '@sandlot/storage/lock'
import { openSessionStore } from '@sandlot/storage/sessions/open'
import type { ReplicaReads } from '@sandlot/storage/sessions/replicas'
import type { SessionStore } from '@sandlot/storage/sessions/store'
import { type AgentConfig, readAgentConfig } from '../config.ts'
import { deploymentKeys } from '../secrets/keys.ts'
import { createBackend } from '../sandbox-backend.ts'
import { builtinTools } from '../tools/builtin/index.ts'

/**
 * `list`, `ownerless`, `prune <volume…>` or `purge`. What it answers is what the launcher reads.
 */
async function main([act = '', ...names]: readonly string[]): Promise<unknown> {
  const config = readAgentConfig(builtinTools().map((tool) => tool.name))
  // Before the first start there is nothing, and nothing is made by asking.
  if (!existsSync(join(config.dataFolder, 'keys', 'deployment.json')))
    return act === 'purge' ? { containers: 0, volumes: 0 } : []
  return withStore(config, async ({ ledger, replicas }) => {
    const keys = deploymentKeys(config.dataFolder, config.deployment)
    const backend = createBackend(config, keys)
    const { images, limits, runtime } = config.sandbox
    const { image } = images
    const own = { backend, ledger, deploymentId: keys.id, deploymentKey: keys.key, image, limits }
    const options = { ...own, runtime, log: warn }
    try {
      if (act === 'list') return await listWorkspaces({ backend, ledger })
      if (act === 'ownerless') return (await ownerlessVolumes({ backend, ledger })).map(({ name }) => name)
      if (act === 'prune') return await pruneVolumes(names, options)
      if (act === 'purge') return await alone(config, replicas, () => purgeAll(options))
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

const RUNNING = 'Sandlot is running. Stop it with ./sandlot down first.'

/** Only where no agent runs, and none can start meanwhile. */
async function alone<T>(config: AgentConfig, replicas: ReplicaReads, work: () => Promise<T>): Promise<T> {
  const lock = lockFile(join(config.dataFolder, 'run', 'agent.lock'))
  if (lock === undefined) throw new Error(RUNNING)
  try {
    if ((await replicas.list()).some(({ living }) => living)) throw new Error(RUNNING)
    return await work()
  } finally {
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
