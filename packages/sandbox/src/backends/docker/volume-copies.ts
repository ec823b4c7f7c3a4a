/** Copies workspaces as tar streams, out and back in, also while their sandboxes run. */
import { once } from 'node:events'
import { Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'

import type { BackendCopies } from '../../backend.ts'
import { SandboxError } from '../../errors.ts'
import { LABEL } from '../../names.ts'
import { CHANGED_WHILE_READ } from '../copy-tar.ts'
import { DEADLINE, type Engine } from './engine.ts'
import { isOurs } from './states.ts'
import { removeHelper, TarHelper } from './tar-helper.ts'
import { notOurs, removeVolume, volumeLabels } from './volumes.ts'

/** `image` has tar, as each of ours. */
export function createVolumeCopies(engine: Engine, deployment: string, image?: string): BackendCopies {
  const helper = async (volume: string, act: 'read' | 'write'): Promise<TarHelper> => {
    if (image === undefined)
      throw new SandboxError('invalid_arguments', 'No image is set for containers that copy files.')
    return TarHelper.create(engine, { deployment, image, volume, act })
  }
  return {
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
