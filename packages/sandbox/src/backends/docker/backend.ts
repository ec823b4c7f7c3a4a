import type { FreeSpace, SandboxBackend } from '../../backend.ts'
import { SandboxError } from '../../errors.ts'
import { isDeploymentId } from '../../names.ts'
import { freeSpace } from '../free-space.ts'
import { capabilitiesFrom, readInfo } from './capabilities.ts'
import type { CircuitOptions } from '../circuit-breaker.ts'
import { type EngineTls, parseDockerHost } from './connection.ts'
import { Containers } from './containers.ts'
import { createEngine, type Engine } from './engine.ts'
import { once } from './once.ts'
import { createQuotaProbe } from './quota.ts'
import { createImageIds, createSpecBuilder } from './spec-builder.ts'
import { createVolumeCopies } from './volume-copies.ts'
import { createVolumes } from './volumes.ts'

export interface DockerBackendOptions {
  /** A `DOCKER_HOST` value; default the usual Unix socket. */
  dockerHost?: string
  /** For an engine behind TLS. */
  tls?: EngineTls
  /** engine-gate listens at `dockerHost`: messages name it when it is unreachable. */
  gate?: boolean
  /** Only containers and volumes of this deployment are visible. `[a-z0-9-]`, at most 40. */
  deployment: string
  /** Default: the profile shipped with this package. */
  seccompFile?: string
  /** Image → an extension of it, which replaces it while it exists. */
  imageExtensions?: Readonly<Record<string, string>>
  /** Image of the containers that copy volumes: any of ours. Without it none is copied. */
  copyImage?: string
  /** Time limits for a hanging engine, and bounds on its calls. */
  circuit?: CircuitOptions
}

/**
 * Sandboxes as containers of one Docker engine. Nothing is contacted before the first call. Throws
 * `invalid_arguments` for an invalid deployment id or address; every method rejects with a
 * `SandboxError`.
 */
export function createDockerBackend(options: DockerBackendOptions): SandboxBackend {
  const { deployment } = options
  if (!isDeploymentId(deployment)) {
    throw new SandboxError(
      'invalid_arguments',
      `"${deployment}" is not a deployment id: lower-case letters, digits and dashes, at most 40.`,
    )
  }
  const address = parseDockerHost(options.dockerHost, options.tls)
  const throughGate = address.kind === 'unix' && options.gate === true
  const engine = createEngine(throughGate ? { ...address, gate: true } : address, options.circuit)
  const imageNames = new Map<string, string>()
  const imageIdOf = createImageIds(engine, options.imageExtensions ?? {}, imageNames)
  const buildSpec = createSpecBuilder(engine, deployment, imageIdOf, options.seccompFile)
  const quota = createQuotaProbe(engine, deployment)
  const volumes = createVolumes(engine, deployment, quota)
  const containers = new Containers(engine, deployment, imageNames)
  return {
    async create(spec, signal) {
      const { body } = await buildSpec(spec, signal)
      await volumes.ensure(spec, signal)
      return containers.create(spec, body, signal)
    },
    open: (sandbox, signal) => containers.open(sandbox, signal),
    stop: (id) => containers.stop(id),
    pause: (id) => containers.pause(id),
    resume: (id) => containers.resume(id),
    claim: (id, owner) => containers.claim(id, owner),
    remove: (id) => containers.remove(id),
    list: (labels) => containers.list(labels),
    inventory: {
      async capabilities(signal) {
        const [apiVersion, kind, info] = await Promise.all([
          engine.apiVersion(signal),
          quota(),
          readInfo(engine, signal),
        ])
        return capabilitiesFrom(info, apiVersion, kind)
      },
      engineId: async () => (await readInfo(engine)).ID,
      inspect: (idOrName) => containers.inspect(idOrName),
      fingerprint: async (spec, signal) => (await buildSpec(spec, signal)).fingerprint,
      imageName: async (image) => imageNames.get(await imageIdOf(image)) ?? image,
      volumes,
      copies: createVolumeCopies(engine, deployment, options.copyImage),
      hostDisk: hostDisk(engine),
      health: () => engine.health(),
      close: async () => {},
    },
  }
}

function hostDisk(engine: Engine): () => Promise<FreeSpace | undefined> {
  const dataRoot = once(async () => (await readInfo(engine)).DockerRootDir)
  return async () => {
    // Over a network the data root is a folder of another machine.
    if (engine.address.kind !== 'unix') return undefined
    const root = await dataRoot()
    return root === undefined ? undefined : freeSpace(root)
  }
}
