/** Which sandboxes this agent uses, from its configuration. */
import { join } from 'node:path'
import { SANDBOX_BACKENDS, type SandboxBackendName } from '@sandlot/shared/config/sandbox-backends'
import { messageOf } from '@sandlot/shared/base/errors'
import type { BackendCapabilities, SandboxBackend } from '@sandlot/sandbox/backend'
import { createDockerBackend } from '@sandlot/sandbox/backends/docker/backend'
import type { EgressOptions } from '@sandlot/sandbox/egress/egress'
import type { UserRulesOptions } from '@sandlot/sandbox/egress/user-rules'
import type { SandboxLedger } from '@sandlot/sandbox/ledger'
import { countAwake, listWorkspaces } from '@sandlot/sandbox/controller/workspaces'
import { type Sandboxes, type SandboxesOptions, createSandboxes } from '@sandlot/sandbox/sandboxes'
import type { AgentConfig, BackendConfig } from './config.ts'
import type { DeploymentKeys } from '@sandlot/shared/node/deployment-keys'
import type { Log } from '../log.ts'

/** The output of `make -C docker/sandbox`; only for `local-process`. */
const SBXD = join(import.meta.dirname, '../../../../docker/sandbox/sbxd')

const DISK_WORDS: Record<BackendCapabilities['quota'], string> = {
  hard: 'the file system holds workspaces to their disk budget',
  soft: 'the disk budget of workspaces is watched',
  none: 'workspaces have no disk budget',
}

interface AgentSandboxes extends Sandboxes {
  /** Problems for an operator, for the status. Does not throw; asks the backend each time. */
  probe(): Promise<{ ok: boolean; message: string }>
  /**
   * The number of people’s sandboxes that are awake, and the engine’s name and version, if it
   * answers.
   */
  facts(): Promise<{ running?: number; engine?: string }>
  /** The name of what sandboxes are made from now; as configured if the engine does not answer. */
  imageName(): Promise<string>
  /** Every workspace, with two questions to the backend however many there are. */
  workspaces(): ReturnType<typeof listWorkspaces>
}

/** Contacts nothing: an engine that is down is found out by the first call, and again by each. */
export async function openSandboxes(
  config: AgentConfig,
  keys: DeploymentKeys,
  ledger: SandboxLedger,
  log: Log,
  people: {
    ofUsers?: UserRulesOptions
    emailOf?: (userId: string) => string | undefined
    share?: SandboxesOptions['share']
    /** A sandbox of this user was refused a connection; must not throw. */
    refused?: (userId: string, host: string, reason: string) => void
  } = {},
): Promise<AgentSandboxes> {
  const backend = await createBackend(config, keys)
  const { images, limits, host, runtime, network, idle, profile, debugUsers } = config.sandbox
  const debugs = (userId: string): boolean =>
    debugUsers.has(userId) || debugUsers.has(people.emailOf?.(userId) ?? userId)
  const sandboxes = createSandboxes({
    backend,
    ledger,
    deploymentId: keys.id,
    deploymentKey: keys.key,
    image: images.image,
    limits,
    host,
    share: people.share,
    pool: { size: SANDBOX_BACKENDS[config.sandbox.backend].pool ? config.sandbox.pool : 0 },
    idle,
    runtime,
    profileFor: (userId) => (userId !== undefined && debugs(userId) ? 'debug' : profile),
    network: { egress: { ...network.egress, ...auditTo(log, people.refused), ...people.ofUsers } },
    log: (message, { error, ...about }) =>
      log.warn({ ...about, error: error === undefined ? undefined : messageOf(error) }, message),
  })
  return {
    ...sandboxes,
    probe: () => probe(backend, () => sandboxes.hostDisk()),
    facts: () => facts(backend, ledger),
    imageName: async () => {
      const name = await backend.inventory.imageName?.(images.image).catch(() => undefined)
      return name ?? images.image
    },
    workspaces: () => listWorkspaces({ backend, ledger }),
  }
}

/**
 * One line for every connection, and a warning for every refusal: names and counts, nothing that
 * was said.
 */
function auditTo(
  log: Log,
  refused?: (userId: string, host: string, reason: string) => void,
): Pick<EgressOptions, 'audit' | 'onRefused'> {
  return {
    audit: (record) => log.info({ egress: record }, 'a sandbox used the network'),
    onRefused: (event) => {
      log.warn({ egress: event }, 'a sandbox was refused a connection')
      const { userId, host, port, reason } = event
      refused?.(userId, host === undefined ? 'a host that was not named' : `${host}:${port}`, reason)
    },
  }
}

/** One for each line of `SANDBOX_BACKENDS`. */
const CONSTRUCTORS: Record<
  SandboxBackendName,
  (config: BackendConfig, keys: DeploymentKeys) => SandboxBackend | Promise<SandboxBackend>
> = {
  docker: ({ sandbox: { dockerHost, tls, images }, deployment }, keys) =>
    createDockerBackend({
      deployment: keys.id,
      dockerHost,
      tls,
      imageExtensions: images.extension === undefined ? undefined : { [images.image]: images.extension },
      // Its id comes from the gate.
      gate: deployment !== undefined,
    }),
  kubernetes: async ({ sandbox: { kubernetes } }, keys) => {
    // Others need none of its modules.
    const { createKubernetesBackend } = await import('@sandlot/sandbox/backends/kubernetes/backend')
    return createKubernetesBackend({ ...kubernetes, deployment: keys.id })
  },
  'local-process': async ({ dataFolder }) => {
    // No image has this module.
    const { createLocalProcessBackend } = await import('@sandlot/sandbox/backends/local-process')
    return createLocalProcessBackend({ sbxd: SBXD, directory: join(dataFolder, 'workspaces') })
  },
}

/** The configured backend. Contacts nothing. */
export async function createBackend(config: BackendConfig, keys: DeploymentKeys): Promise<SandboxBackend> {
  return CONSTRUCTORS[config.sandbox.backend](config, keys)
}

/** Undefined: there is none, or it does not answer, which is logged. */
export async function engineId(
  config: AgentConfig,
  keys: DeploymentKeys,
  log: Log,
): Promise<string | undefined> {
  try {
    return await (await createBackend(config, keys)).inventory.engineId?.()
  } catch (error) {
    const words = 'the engine does not answer, so it is not known whether other agents have the same'
    log.warn({ error: messageOf(error) }, words)
    return undefined
  }
}

async function probe(
  backend: SandboxBackend,
  hostDisk: Sandboxes['hostDisk'],
): Promise<{ ok: boolean; message: string }> {
  try {
    const { name, version, isolates, quota } = await backend.inventory.capabilities()
    const { open, message } = hostDisk()
    if (open && message !== undefined) return { ok: false, message }
    if (isolates)
      return { ok: true, message: `Commands run in containers (${name} ${version}); ${DISK_WORDS[quota]}.` }
    return {
      ok: false,
      message: `SANDLOT_SANDBOX=${name} isolates nothing: every command of the agent runs as this process’s user.`,
    }
  } catch (error) {
    return { ok: false, message: messageOf(error) }
  }
}

async function facts(
  backend: SandboxBackend,
  ledger: SandboxLedger,
): Promise<{ running?: number; engine?: string }> {
  const [running, engine] = await Promise.allSettled([
    countAwake({ backend, ledger }),
    backend.inventory.capabilities(),
  ])
  return {
    running: running.status === 'rejected' ? undefined : running.value,
    engine: engine.status === 'rejected' ? undefined : `${engine.value.name} ${engine.value.version}`,
  }
}
