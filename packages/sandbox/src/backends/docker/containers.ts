/** Containers of one deployment. Those of other deployments and programs are never touched. */
import { setTimeout as sleep } from 'node:timers/promises'

import type Docker from 'dockerode'

import { backoffMs } from '#shared/async/backoff'
import type { BackendSandbox, OpenedSandbox, SandboxOwner, SandboxSpec, SeenSandbox } from '../../backend.ts'
import { SandboxError } from '../../errors.ts'
import { claimedName, LABEL } from '../../names.ts'
import { post } from './attach.ts'
import type { CreateBody } from './create-template.ts'
import { absentIf404, engineAnswer, isForgottenTask, unless } from './engine-error.ts'
import { DEADLINE, type Engine } from './engine.ts'
import { isOurs, normalState } from './states.ts'
import { unframed } from './stream.ts'

/** Milliseconds until the container of a name that is taken must be visible. */
const APPEARS_MS = 20_000

export class Containers {
  readonly #engine: Engine
  readonly #deployment: string
  /** Image id → name, of images that were found. */
  readonly #imageNames: ReadonlyMap<string, string>
  /** Id → slot of every container seen with our labels. A container never changes its labels. */
  readonly #slots = new Map<string, string>()

  constructor(engine: Engine, deployment: string, imageNames: ReadonlyMap<string, string>) {
    this.#engine = engine
    this.#deployment = deployment
    this.#imageNames = imageNames
  }

  async create(
    { name, slot }: Pick<SandboxSpec, 'name' | 'slot'>,
    body: CreateBody,
    signal?: AbortSignal,
  ): Promise<BackendSandbox> {
    const id = await this.#engine.call(
      'create the sandbox',
      DEADLINE.change,
      (docker, inner) => postCreate(docker, name, body, inner),
      signal,
    )
    if (id !== undefined) {
      this.#remember(id, body.Labels)
      return { id, name, state: 'created', labels: body.Labels }
    }
    const existing = await this.#appearing(name, signal)
    if (existing?.labels[LABEL.slot] === slot) return existing
    throw new SandboxError(
      'exists',
      `The container name ${name} is taken on the Docker engine. Try again under another one.`,
    )
  }

  async open({ id, state }: SeenSandbox, signal?: AbortSignal): Promise<OpenedSandbox> {
    await this.#must(id, signal)
    // Attached before the start, so the key is installed before any user process exists.
    const stream = unframed(await this.#engine.attach(id, signal))
    // An error without a listener would end the process.
    stream.on('error', () => {})
    try {
      if (state !== 'running') await this.#start(id)
    } catch (error) {
      stream.destroy()
      throw error
    }
    return { stream, keyId: id }
  }

  async stop(id: string): Promise<void> {
    if (!(await this.#isOurs(id))) return
    await this.#engine.call('stop the sandbox', DEADLINE.change, (docker, signal) =>
      unless([304, 404], docker.getContainer(id).stop({ t: 2, abortSignal: signal })),
    )
  }

  async pause(id: string): Promise<void> {
    await this.#must(id)
    await this.#changeState('pause the sandbox', id, 'paused', (docker, signal) =>
      docker.getContainer(id).pause({ abortSignal: signal }),
    )
  }

  async resume(id: string): Promise<void> {
    await this.#must(id)
    await this.#changeState('resume the sandbox', id, 'running', (docker, signal) =>
      docker.getContainer(id).unpause({ abortSignal: signal }),
    )
  }

  async claim(id: string, { tag, generation }: SandboxOwner): Promise<void> {
    await this.#must(id)
    const engine = this.#engine
    const name = claimedName(this.#deployment, this.#slots.get(id) ?? '', tag, generation)
    const to = `/containers/${encodeURIComponent(id)}/rename?name=${encodeURIComponent(name)}`
    await engine.call('claim the sandbox', DEADLINE.change, async (docker, signal) => {
      try {
        await post(engine.address, `/v${await engine.apiVersion()}${to}`, signal)
      } catch (error) {
        // Also the answer where it has this name already: another controller was first.
        const status = engineAnswer(error)?.statusCode
        if (status !== 400 && status !== 409) throw error
        if ((await docker.getContainer(id).inspect({ abortSignal: signal })).Name !== `/${name}`) throw error
      }
    })
  }

  async remove(id: string): Promise<void> {
    if (!(await this.#isOurs(id))) return
    // 409: it is being removed already. `v` would remove anonymous volumes only, and there are
    // none: the workspace is a named volume and stays.
    await this.#engine.call('remove the sandbox', DEADLINE.change, (docker, signal) =>
      unless([404, 409], docker.getContainer(id).remove({ force: true, v: false, abortSignal: signal })),
    )
    this.#slots.delete(id)
  }

  async list(labels: Record<string, string>): Promise<BackendSandbox[]> {
    const wanted = { ...labels, [LABEL.deployment]: this.#deployment, [LABEL.role]: 'sandbox' }
    const filters = { label: Object.entries(wanted).map(([name, value]) => `${name}=${value}`) }
    const found = await this.#engine.call('list the sandboxes', DEADLINE.read, (docker, signal) =>
      docker.listContainers({ all: true, filters, abortSignal: signal }),
    )
    return found.map((container) => {
      this.#remember(container.Id, container.Labels)
      return {
        id: container.Id,
        name: (container.Names[0] ?? '').replace(/^\//, ''),
        state: normalState(container.State),
        labels: container.Labels,
        image: this.#imageNames.get(container.ImageID),
      }
    })
  }

  async inspect(idOrName: string, signal?: AbortSignal): Promise<BackendSandbox | undefined> {
    const found = await this.#find(idOrName, signal)
    return found && this.#ours(found)
  }

  async #start(id: string): Promise<void> {
    const forgotten = await this.#engine.call(
      'start the sandbox',
      DEADLINE.change,
      async (docker, signal) => {
        try {
          await unless([304], docker.getContainer(id).start({ abortSignal: signal }))
          return undefined
        } catch (error) {
          if (isForgottenTask(error)) return error
          throw error
        }
      },
    )
    if (!forgotten) return
    // It can never be started again; its files are in its volume.
    await this.remove(id)
    const what =
      'The Docker engine lost track of the container in a crash, so it was removed; the files stay.'
    throw new SandboxError('sandbox_lost', `${what} Try again.`, { cause: forgotten })
  }

  #remember(id: string, labels: Record<string, string>): void {
    this.#slots.set(id, labels[LABEL.slot] ?? '')
  }

  /** Any container, also one that is not ours. */
  #find(idOrName: string, signal?: AbortSignal): Promise<Docker.ContainerInspectInfo | undefined> {
    return this.#engine.call(
      'inspect the sandbox',
      DEADLINE.read,
      (docker, inner) => absentIf404(docker.getContainer(idOrName).inspect({ abortSignal: inner })),
      signal,
    )
  }

  #ours(found: Docker.ContainerInspectInfo): BackendSandbox | undefined {
    if (!isOurs(this.#deployment, found.Config.Labels)) return undefined
    this.#remember(found.Id, found.Config.Labels)
    return {
      id: found.Id,
      name: found.Name.replace(/^\//, ''),
      state: normalState(found.State.Status),
      labels: found.Config.Labels,
    }
  }

  /** Also false when there is no such container. */
  async #isOurs(id: string, signal?: AbortSignal): Promise<boolean> {
    return this.#slots.has(id) || (await this.inspect(id, signal)) !== undefined
  }

  async #must(id: string, signal?: AbortSignal): Promise<void> {
    if (!(await this.#isOurs(id, signal))) throw removed()
  }

  /**
   * A name is taken some time before its container is visible: another create may be in progress,
   * which takes long on a busy machine. A name whose container never appears was left by a crash of
   * the engine.
   */
  async #appearing(name: string, signal?: AbortSignal): Promise<BackendSandbox | undefined> {
    const from = performance.now()
    for (let tries = 1; performance.now() - from < APPEARS_MS; tries++) {
      const found = await this.#find(name, signal)
      if (found) return this.#ours(found)
      await sleep(backoffMs(tries, { firstMs: 20, longestMs: 1_000 }))
    }
    return undefined
  }

  /**
   * A pause or resume is answered with 409 both when it has no effect and when it is impossible.
   */
  async #changeState(
    doing: string,
    id: string,
    wanted: BackendSandbox['state'],
    run: (docker: Docker, signal: AbortSignal) => Promise<unknown>,
  ): Promise<void> {
    const done = await this.#engine.call(doing, DEADLINE.change, async (docker, signal) => {
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
    const now = await this.inspect(id)
    if (now?.state === wanted) return
    if (!now) throw removed()
    throw new SandboxError(
      'engine_unavailable',
      `The Docker engine could not ${doing}: it is ${now.state}.`,
      { cause: done },
    )
  }
}

function removed(): SandboxError {
  return new SandboxError('sandbox_lost', 'The sandbox no longer exists on the Docker engine.')
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
