import { setTimeout as sleep } from 'node:timers/promises'

import type Docker from 'dockerode'

import type { BackendSandbox, SandboxBackend } from '../../backend.ts'
import { unframed } from './stream.ts'
import { SandboxError } from '../../errors.ts'
import { claimedName, isDeploymentId, LABEL } from '../../names.ts'
import { absentIf404, unless, engineAnswer, isForgottenTask } from './engine-error.ts'
import { post } from './attach.ts'
import { createImageIds, createSpecBuilder } from './spec-builder.ts'
import { capabilitiesFrom, readInfo } from './capabilities.ts'
import type { CircuitOptions } from './circuit-breaker.ts'
import { type EngineTls, parseDockerHost } from './connection.ts'
import { createEngine, DEADLINE } from './engine.ts'
import { once } from './once.ts'
import { isOurs, normalState } from './states.ts'
import { createQuotaProbe } from './quota.ts'
import { freeSpace } from '../free-space.ts'
import { createVolumes } from './volumes.ts'
import type { CreateBody } from './create-template.ts'

export interface DockerBackendOptions {
  /** As in `DOCKER_HOST`; default the usual Unix socket. */
  dockerHost?: string
  /** For an engine behind TLS. */
  tls?: EngineTls
  /** Whether engine-gate listens at `dockerHost`: what cannot be reached is called by its name. */
  gate?: boolean
  /**
   * Only containers and volumes of this deployment are ever seen or touched. `[a-z0-9-]`, at most
   * 40.
   */
  deployment: string
  /** Default: the profile shipped with this package. */
  seccompFile?: string
  /** Image → one made from it, which is used in its place while it is there. */
  imageExtensions?: Readonly<Record<string, string>>
  /** When an engine that hangs is given up for a while, and how many calls may wait for it. */
  circuit?: CircuitOptions
}

/** How long the container of a name that is taken may take to be seen, in milliseconds. */
const APPEARS_MS = 20_000

/**
 * Sandboxes as containers of one Docker engine. Nothing is contacted before the first call. Throws
 * `invalid_arguments` for a deployment id or an address that cannot be; every method rejects with a
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
  const blueprint = createSpecBuilder(engine, deployment, imageIdOf, options.seccompFile)
  const quota = createQuotaProbe(engine, deployment)
  const volumes = createVolumes(engine, deployment, quota)
  /** The engine's folder. */
  const dataRoot = once(async () => (await readInfo(engine)).DockerRootDir)
  /**
   * Id → slot of every container seen to carry our labels; a container never changes its labels.
   */
  const owned = new Map<string, string>()
  const remember = (id: string, labels: Record<string, string>): void => {
    owned.set(id, labels[LABEL.slot] ?? '')
  }

  /** Any container, also one that is not ours. */
  function look(idOrName: string, signal?: AbortSignal): Promise<Docker.ContainerInspectInfo | undefined> {
    return engine.call(
      'look at the sandbox',
      DEADLINE.read,
      (docker, inner) => absentIf404(docker.getContainer(idOrName).inspect({ abortSignal: inner })),
      signal,
    )
  }

  async function inspect(idOrName: string, signal?: AbortSignal): Promise<BackendSandbox | undefined> {
    const found = await look(idOrName, signal)
    return found && ours(found)
  }

  function ours(found: Docker.ContainerInspectInfo): BackendSandbox | undefined {
    if (!isOurs(deployment, found.Config.Labels)) return undefined
    remember(found.Id, found.Config.Labels)
    return {
      id: found.Id,
      name: found.Name.replace(/^\//, ''),
      state: normalState(found.State.Status),
      labels: found.Config.Labels,
    }
  }

  /** Refuse to touch what is not ours. False when there is no such container. */
  async function check(id: string, signal?: AbortSignal): Promise<boolean> {
    return owned.has(id) || (await inspect(id, signal)) !== undefined
  }

  /**
   * A name is taken some time before the container can be seen: another create of it may be under
   * way, which on a busy machine takes long. A name of which nothing ever comes is what a crash of
   * the engine left.
   */
  async function appearing(name: string, signal?: AbortSignal): Promise<BackendSandbox | undefined> {
    const from = performance.now()
    for (let wait = 20; performance.now() - from < APPEARS_MS; wait = Math.min(wait * 2, 1_000)) {
      const found = await look(name, signal)
      if (found) return ours(found)
      await sleep(wait)
    }
    return undefined
  }

  async function must(id: string, signal?: AbortSignal): Promise<void> {
    if (!(await check(id, signal)))
      throw new SandboxError('sandbox_lost', 'The sandbox is gone from the Docker engine.')
  }

  async function remove(id: string): Promise<void> {
    if (!(await check(id))) return
    // 409: it is being removed already. `v` would take anonymous volumes only, and there are none:
    // the workspace is a named one and stays.
    await engine.call('remove the sandbox', DEADLINE.change, (docker, signal) =>
      unless([404, 409], docker.getContainer(id).remove({ force: true, v: false, abortSignal: signal })),
    )
    owned.delete(id)
  }

  return {
    async create(spec, signal) {
      const { body } = await blueprint(spec, signal)
      await volumes.ensure(spec, signal)
      const id = await engine.call(
        'create the sandbox',
        DEADLINE.change,
        (docker, inner) => postCreate(docker, spec.name, body, inner),
        signal,
      )
      if (id !== undefined) {
        remember(id, body.Labels)
        return { id, name: spec.name, state: 'created', labels: body.Labels }
      }
      const existing = await appearing(spec.name, signal)
      if (existing?.labels[LABEL.slot] === spec.slot) return existing
      throw new SandboxError(
        'exists',
        `The container name ${spec.name} is taken on the Docker engine. Try again under another one.`,
      )
    },

    async start(id) {
      await must(id)
      const forgotten = await engine.call('start the sandbox', DEADLINE.change, async (docker, signal) => {
        try {
          await unless([304], docker.getContainer(id).start({ abortSignal: signal }))
          return undefined
        } catch (error) {
          if (isForgottenTask(error)) return error
          throw error
        }
      })
      if (!forgotten) return
      // It can never be started again; what it holds is in its volume.
      await remove(id)
      const what =
        'The Docker engine lost track of the container in a crash, so it was removed; the files stay.'
      throw new SandboxError('sandbox_lost', `${what} Try again.`, { cause: forgotten })
    },

    async stop(id) {
      if (!(await check(id))) return
      await engine.call('stop the sandbox', DEADLINE.change, (docker, signal) =>
        unless([304, 404], docker.getContainer(id).stop({ t: 2, abortSignal: signal })),
      )
    },

    async pause(id) {
      await must(id)
      await changeState('pause the sandbox', id, 'paused', (docker, signal) =>
        docker.getContainer(id).pause({ abortSignal: signal }),
      )
    },

    async resume(id) {
      await must(id)
      await changeState('resume the sandbox', id, 'running', (docker, signal) =>
        docker.getContainer(id).unpause({ abortSignal: signal }),
      )
    },

    async claim(id, { tag, generation }) {
      await must(id)
      const name = claimedName(deployment, owned.get(id) ?? '', tag, generation)
      const to = `/containers/${encodeURIComponent(id)}/rename?name=${encodeURIComponent(name)}`
      await engine.call('claim the sandbox', DEADLINE.change, async (docker, signal) => {
        try {
          await post(engine.address, `/v${await engine.apiVersion()}${to}`, signal)
        } catch (error) {
          // Also the answer where it has this name already: another controller was first.
          const status = engineAnswer(error)?.statusCode
          if (status !== 400 && status !== 409) throw error
          if ((await docker.getContainer(id).inspect({ abortSignal: signal })).Name !== `/${name}`)
            throw error
        }
      })
    },

    remove,

    async list(labels) {
      const wanted = { ...labels, [LABEL.deployment]: deployment, [LABEL.role]: 'sandbox' }
      const filters = { label: Object.entries(wanted).map(([name, value]) => `${name}=${value}`) }
      const found = await engine.call('list the sandboxes', DEADLINE.read, (docker, signal) =>
        docker.listContainers({ all: true, filters, abortSignal: signal }),
      )
      return found.map((container) => {
        remember(container.Id, container.Labels)
        return {
          id: container.Id,
          name: (container.Names[0] ?? '').replace(/^\//, ''),
          state: normalState(container.State),
          labels: container.Labels,
          image: imageNames.get(container.ImageID),
        }
      })
    },

    async openStream(id, signal) {
      await must(id, signal)
      return unframed(await engine.attach(id, signal))
    },

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

      inspect: (idOrName) => inspect(idOrName),

      async fingerprint(spec, signal) {
        return (await blueprint(spec, signal)).fingerprint
      },

      async imageName(image) {
        return imageNames.get(await imageIdOf(image)) ?? image
      },

      volumes,

      async hostDisk() {
        // Over a network the data root is a folder of another machine.
        if (engine.address.kind !== 'unix') return undefined
        const root = await dataRoot()
        return root === undefined ? undefined : freeSpace(root)
      },

      health: () => engine.health(),

      close: async () => {},
    },
  }

  /** Pause and resume answer 409 when it is so already, and also when it cannot be: look which. */
  async function changeState(
    doing: string,
    id: string,
    wanted: BackendSandbox['state'],
    run: Parameters<typeof engine.call<unknown>>[2],
  ): Promise<void> {
    const done = await engine.call(doing, DEADLINE.change, async (docker, signal) => {
      try {
        await run(docker, signal)
        return true
      } catch (error) {
        const status = engineAnswer(error)?.statusCode
        if (status === 409 || status === 500) return error
        throw error
      }
    })
    if (done === true) return
    const now = await inspect(id)
    if (now?.state === wanted) return
    if (!now) throw new SandboxError('sandbox_lost', 'The sandbox is gone from the Docker engine.')
    throw new SandboxError(
      'engine_unavailable',
      `The Docker engine could not ${doing}: it is ${now.state}.`,
      { cause: done },
    )
  }
}

/**
 * The new container's id; undefined when the name is taken. Not `createContainer`, which would put
 * the whole body into the URL as well.
 */
async function postCreate(
  docker: Docker,
  name: string,
  body: CreateBody,
  abortSignal: AbortSignal,
): Promise<string | undefined> {
  const statusCodes = {
    201: true,
    400: 'bad parameter',
    404: 'no such image',
    409: 'conflict',
    500: 'server error',
  } as const
  const created = await unless(
    [409],
    new Promise<unknown>((resolve, reject) => {
      docker.modem.dial(
        {
          path: '/containers/create?',
          method: 'POST',
          options: { _query: { name }, _body: body },
          statusCodes,
          abortSignal,
        },
        (error, result) => (error ? reject(error) : resolve(result)),
      )
    }),
  )
  if (created === undefined) return undefined
  if (typeof created === 'object' && created !== null && 'Id' in created && typeof created.Id === 'string')
    return created.Id
  throw new SandboxError('engine_unavailable', 'The Docker engine answered a create without an id.')
}
