/**
 * `./sandlot sandbox` and `./sandlot down --purge`, as a process next to the agent: it alone may
 * read the ledger. Prints one line of JSON.
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
import { messageOf } from '@sandlot/shared/base/errors'
import { isPostgres } from '@sandlot/storage/database/dialect'
import { openSessionReader, openSessionStore } from '@sandlot/storage/store/open'
import { type BackendConfig, readAgentConfig, readBackendConfig } from '../config/config.ts'
import { type DeploymentKeys, deploymentKeys } from '@sandlot/shared/node/deployment-keys'
import type { SandboxBackend } from '@sandlot/sandbox/backend'
import { createBackend } from '../config/sandbox-backend.ts'
import { builtinTools } from '../tools/builtin/index.ts'
import { whileNoAgentRuns } from './while-no-agent-runs.ts'

/**
 * `list`, `ownerless`, `prune <volume…>`, `stop`: all that run, `purge`, or `agents`: which of
 * several live. What it answers is what the launcher reads.
 */
async function main([act = '', ...names]: readonly string[]): Promise<unknown> {
  const config = readBackendConfig()
  // Before the first start there is nothing, and nothing is made by asking.
  if (!existsSync(join(config.keysFolder, 'deployment.json')))
    return act === 'purge' ? { containers: 0, volumes: 0 } : []
  const open = () => openSessionStore(config.database, { mode: config.sessionsMode })
  if (act === 'purge') {
    const purged = await whileNoAgentRuns(config.dataFolder, open, ({ ledger }) =>
      withRemoval((own) => purgeAll({ ...own, ledger })),
    )
    if ('result' in purged) return purged.result
    const running = purged.running.length === 0 ? '' : ` (${purged.running.join(', ')})`
    throw new Error(`Sandlot is running${running}. Stop it with ./sandlot down first.`)
  }
  if (act === 'stop') return withBackend(config, stopAll)
  if (act === 'prune')
    return withStore(await open(), ({ ledger }) =>
      withRemoval((own) => pruneVolumes(names, { ...own, ledger })),
    )
  // Next to a running agent, of which a file has one: nothing is migrated, cleaned up or indexed.
  const isThere = isPostgres(config.database) || existsSync(config.database)
  const reader = isThere ? await openSessionReader(config.database, { waitMs: 0 }) : await open()
  return withStore(reader, async ({ ledger, replicas }) => {
    if (act === 'agents') return (await replicas.list()).filter(({ living }) => living).map(({ id }) => id)
    return withBackend(config, async (backend) => {
      if (act === 'list') return listWorkspaces({ backend, ledger })
      if (act === 'ownerless') return (await ownerlessVolumes({ backend, ledger })).map(({ name }) => name)
      throw new Error(`There is nothing to do called "${act}".`)
    })
  })
}

/** Resolves with the names of those that ran. */
async function stopAll(backend: SandboxBackend): Promise<string[]> {
  const all = await backend.list({})
  const running = all.filter(({ state }) => state === 'running' || state === 'paused')
  const stopped = await Promise.allSettled(running.map(({ id }) => backend.stop(id)))
  for (const one of stopped) if (one.status === 'rejected') throw one.reason
  return running.map(({ name }) => name)
}

async function withStore<S extends { close(): Promise<void> }, T>(
  store: S,
  work: (store: S) => Promise<T>,
): Promise<T> {
  try {
    return await work(store)
  } finally {
    await store.close()
  }
}

async function withBackend<T>(
  config: BackendConfig,
  work: (backend: SandboxBackend, keys: DeploymentKeys) => Promise<T>,
): Promise<T> {
  const keys = deploymentKeys(config.keysFolder, config.deployment)
  const backend = await createBackend(config, keys)
  try {
    return await work(backend, keys)
  } finally {
    await backend.inventory.close()
  }
}

/** Containers that empty a workspace are made as the agent makes them, so all of it is read. */
function withRemoval<T>(work: (own: Omit<RemovalOptions, 'ledger'>) => Promise<T>): Promise<T> {
  const config = readAgentConfig(builtinTools().map((tool) => tool.name))
  const { images, limits, runtime } = config.sandbox
  const { image } = images
  return withBackend(config, (backend, { id: deploymentId, key: deploymentKey }) =>
    work({ backend, deploymentId, deploymentKey, image, limits, runtime, log: warn }),
  )
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
