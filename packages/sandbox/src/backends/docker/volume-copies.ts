/** Copies workspaces as tar streams, out and back in, also while their sandboxes run. */
import { once } from 'node:events'
import { Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'

import type { BackendVolume } from '../../backend.ts'
import { SandboxError } from '../../errors.ts'
import { LABEL } from '../../names.ts'
import { type EngineTls, parseDockerHost } from './connection.ts'
import { createEngine, DEADLINE, type Engine } from './engine.ts'
import { isOurs } from './states.ts'
import { removeHelper, TarHelper } from './tar-helper.ts'
import { listVolumes, notOurs, removeVolume, volumeLabels } from './volumes.ts'

export interface VolumeCopies {
  /** Every workspace of the deployment. */
  list(): Promise<BackendVolume[]>
  /** True for any volume of this name, also of another owner. */
  exists(name: string): Promise<boolean>
  /** Its files as a tar stream, each as it is when it is read. Fails where tar does. */
  read(name: string): AsyncIterable<Buffer>
  /** Creates the volume and fills it from a tar stream. A failed one is removed again. */
  write(volume: BackendVolume, tar: AsyncIterable<Uint8Array>): Promise<void>
  /** Removes a volume of the deployment. Idempotent. */
  remove(name: string): Promise<void>
  /** Removes the helpers of a process that was killed. Only where no other process copies. */
  removeLeftHelpers(): Promise<void>
}

/** Exit code of tar for a file that changed while it was read: the copy has it as it was. */
const CHANGED_WHILE_READ = 1

/** All methods reject with a `SandboxError`. */
export function createVolumeCopies(options: {
  deployment: string
  dockerHost?: string
  tls?: EngineTls
  /** Any of our images: each has tar. */
  image: string
}): VolumeCopies {
  const { deployment, image } = options
  const engine = createEngine(parseDockerHost(options.dockerHost, options.tls))
  const helper = (volume: string, act: 'read' | 'write'): Promise<TarHelper> =>
    TarHelper.create(engine, { deployment, image, volume, act })
  return {
    list: () => listVolumes(engine, deployment),
    exists: async (name) => (await volumeLabels(engine, name)) !== undefined,
    async *read(name) {
      if ((await volumeLabels(engine, name)) === undefined)
        throw new SandboxError('sandbox_lost', `Volume ${name} no longer exists.`)
      yield* unpack(name, await helper(name, 'read'))
    },
    async write({ name, labels }, tar) {
      if (!isOurs(deployment, labels)) throw notOurs(name)
      if ((await volumeLabels(engine, name)) !== undefined)
        throw new SandboxError('exists', `Volume ${name} exists already.`)
      await engine.call('make a volume', DEADLINE.change, (docker, abortSignal) =>
        docker.createVolume({ Name: name, Driver: 'local', Labels: labels, abortSignal }),
      )
      try {
        await fill(name, await helper(name, 'write'), tar)
      } catch (error) {
        await removeVolume(engine, deployment, name)
        throw error
      }
    },
    remove: (name) => removeVolume(engine, deployment, name),
    removeLeftHelpers: () => removeLeftHelpers(engine, deployment),
  }
}

async function* unpack(name: string, tar: TarHelper): AsyncGenerator<Buffer> {
  try {
    const { stream, complaints } = await tar.attach()
    await tar.start()
    yield* stream
    const code = await tar.exitCode()
    if (code > CHANGED_WHILE_READ)
      throw new SandboxError('engine_unavailable', `${name} could not be read: ${complaints()}`)
  } finally {
    await tar.remove()
  }
}

async function fill(name: string, tar: TarHelper, input: AsyncIterable<Uint8Array>): Promise<void> {
  try {
    const { stream, complaints } = await tar.attach()
    stream.resume()
    await tar.start()
    const closed = once(stream, 'close')
    await pipeline(Readable.from(input), stream, { end: true }).catch(async (error: unknown) => {
      // tar has exited before its input ended: its own message is the reason.
      stream.destroy()
      await closed
      if (complaints() === '') throw error
    })
    const code = await tar.exitCode()
    if (code !== 0)
      throw new SandboxError('engine_unavailable', `${name} could not be written: ${complaints()}`)
  } finally {
    await tar.remove()
  }
}

async function removeLeftHelpers(engine: Engine, deployment: string): Promise<void> {
  const filters = { label: [`${LABEL.deployment}=${deployment}`, `${LABEL.role}=backup`] }
  const left = await engine.call('list containers that copy files', DEADLINE.read, (docker, abortSignal) =>
    docker.listContainers({ all: true, filters, abortSignal }),
  )
  for (const { Id } of left) await removeHelper(engine, Id)
}
