/**
 * Workspaces as tar streams, and back, also while their sandboxes run: a helper container has the
 * one volume, no network, and no right but to read or to write files.
 */
import { once } from 'node:events'
import { Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import { SandboxError } from '../../errors.ts'
import { LABEL } from '../../names.ts'
import { type EngineTls, parseDockerHost } from './connection.ts'
import { absentIf404, unless } from './engine-error.ts'
import { createEngine, DEADLINE } from './engine.ts'
import { isOurs } from './states.ts'
import { unframed } from './stream.ts'

interface WorkspaceVolume {
  name: string
  labels: Record<string, string>
}

export interface VolumeCopies {
  /** Every workspace of the deployment. */
  list(): Promise<WorkspaceVolume[]>
  /** Whether there is a volume of this name, whosever it is. */
  exists(name: string): Promise<boolean>
  /** Its files as a tar stream, each as it is when it is read. Fails where tar does. */
  read(name: string): AsyncIterable<Buffer>
  /** Makes the volume and fills it from a tar stream. What failed is removed again. */
  write(volume: WorkspaceVolume, tar: AsyncIterable<Uint8Array>): Promise<void>
  /** Removes a volume of the deployment. Idempotent. */
  remove(name: string): Promise<void>
  /** Removes the helpers of a process that was killed. Only where no other copies. */
  removeLeftHelpers(): Promise<void>
}

/** What tar says where a file has changed while it was read: the copy has it as it was. */
const CHANGED_WHILE_READ = 1
/** Of the last lines that tar wrote. */
const MOST_COMPLAINTS = 2_000
/** Its processor time beside everything else that wants some; 1024 is ordinary. */
const LEAST_SHARE = 2

/** All methods reject with a `SandboxError`. */
export function createVolumeCopies(options: {
  deployment: string
  dockerHost?: string
  tls?: EngineTls
  /** Any of ours: it has tar. */
  image: string
}): VolumeCopies {
  const { deployment, image } = options
  const engine = createEngine(parseDockerHost(options.dockerHost, options.tls))

  async function inspect(name: string): Promise<Record<string, string> | undefined> {
    const volume = await engine.call('look at the volume', DEADLINE.read, (docker, signal) =>
      absentIf404(docker.getVolume(name).inspect({ abortSignal: signal })),
    )
    return volume && (volume.Labels ?? {})
  }

  /** The helper, made and not started. */
  async function helper(volume: string, act: 'read' | 'write'): Promise<string> {
    const reads = act === 'read'
    const container = await engine.call('make a container that copies files', DEADLINE.change, (docker) =>
      docker.createContainer({
        Image: image,
        Entrypoint: ['tar'],
        Cmd: [
          '-C',
          '/volume',
          '--numeric-owner',
          ...(reads ? ['--format=posix', '-cf', '-', '.'] : ['-xpf', '-']),
        ],
        User: '0:0',
        WorkingDir: '/',
        AttachStdin: !reads,
        AttachStdout: true,
        AttachStderr: true,
        OpenStdin: !reads,
        StdinOnce: !reads,
        Tty: false,
        Labels: { [LABEL.deployment]: deployment, [LABEL.role]: 'backup' },
        HostConfig: {
          NetworkMode: 'none',
          ReadonlyRootfs: true,
          CapDrop: ['ALL'],
          CapAdd: reads ? ['DAC_READ_SEARCH'] : ['CHOWN', 'DAC_OVERRIDE', 'FOWNER', 'FSETID', 'MKNOD'],
          SecurityOpt: ['no-new-privileges:true'],
          Memory: 256 * 1024 ** 2,
          PidsLimit: 16,
          CpuShares: LEAST_SHARE,
          LogConfig: { Type: 'none', Config: {} },
          Mounts: [
            {
              Type: 'volume',
              Source: volume,
              Target: '/volume',
              ReadOnly: reads,
              VolumeOptions: { NoCopy: true, Labels: {}, DriverConfig: { Name: 'local', Options: {} } },
            },
          ],
        },
      }),
    )
    return container.id
  }

  async function started(id: string): Promise<void> {
    await engine.call('start a container that copies files', DEADLINE.change, (docker, signal) =>
      docker.getContainer(id).start({ abortSignal: signal }),
    )
  }

  async function exitCode(id: string): Promise<number> {
    const { StatusCode } = await engine.call('wait for tar', DEADLINE.change, (docker, signal) =>
      docker.getContainer(id).wait({ abortSignal: signal }),
    )
    return Number(StatusCode)
  }

  async function remove(id: string): Promise<void> {
    await engine.call('remove a container that copies files', DEADLINE.change, (docker, signal) =>
      unless([404, 409], docker.getContainer(id).remove({ force: true, v: false, abortSignal: signal })),
    )
  }

  /** Attached before it starts, so that nothing of what it says is missed. */
  async function open(id: string) {
    let complaints = ''
    const stream = unframed(await engine.attach(id), {
      onStderr: (bytes) => {
        complaints = (complaints + bytes.toString('utf8')).slice(-MOST_COMPLAINTS)
      },
    })
    return { stream, complaints: () => complaints.trim() }
  }

  async function* read(name: string): AsyncGenerator<Buffer> {
    if ((await inspect(name)) === undefined)
      throw new SandboxError('sandbox_lost', `There is no volume ${name} any more.`)
    const id = await helper(name, 'read')
    try {
      const { stream, complaints } = await open(id)
      await started(id)
      yield* stream
      const code = await exitCode(id)
      if (code > CHANGED_WHILE_READ)
        throw new SandboxError('engine_unavailable', `${name} could not be read: ${complaints()}`)
    } finally {
      await remove(id)
    }
  }

  async function fill(name: string, tar: AsyncIterable<Uint8Array>): Promise<void> {
    const id = await helper(name, 'write')
    try {
      const { stream, complaints } = await open(id)
      stream.resume()
      await started(id)
      const gone = once(stream, 'close')
      await pipeline(Readable.from(tar), stream, { end: true }).catch(async (error: unknown) => {
        // tar has ended before its input: what it said is the reason.
        stream.destroy()
        await gone
        if (complaints() === '') throw error
      })
      const code = await exitCode(id)
      if (code !== 0)
        throw new SandboxError('engine_unavailable', `${name} could not be written: ${complaints()}`)
    } finally {
      await remove(id)
    }
  }

  async function removeVolume(name: string): Promise<void> {
    const labels = await inspect(name)
    if (labels === undefined) return
    if (!isOurs(deployment, labels))
      throw new SandboxError('permission', `The volume ${name} is not one of this deployment's.`)
    await engine.call('remove the volume', DEADLINE.change, (docker, signal) =>
      unless([404], docker.getVolume(name).remove({ abortSignal: signal })),
    )
  }

  return {
    async list() {
      const filters = JSON.stringify({
        label: [`${LABEL.deployment}=${deployment}`, `${LABEL.role}=sandbox`],
      })
      const { Volumes } = await engine.call('list the volumes', DEADLINE.read, (docker, abortSignal) =>
        docker.listVolumes({ filters, abortSignal }),
      )
      return Volumes.map(({ Name, Labels }) => ({ name: Name, labels: Labels ?? {} }))
    },
    exists: async (name) => (await inspect(name)) !== undefined,
    read,
    async write({ name, labels }, tar) {
      if (!isOurs(deployment, labels))
        throw new SandboxError('permission', `The volume ${name} is not one of this deployment's.`)
      if ((await inspect(name)) !== undefined)
        throw new SandboxError('exists', `There is a volume ${name} already.`)
      await engine.call('make a volume', DEADLINE.change, (docker, abortSignal) =>
        docker.createVolume({ Name: name, Driver: 'local', Labels: labels, abortSignal }),
      )
      try {
        await fill(name, tar)
      } catch (error) {
        await removeVolume(name)
        throw error
      }
    },
    remove: removeVolume,
    async removeLeftHelpers() {
      const filters = { label: [`${LABEL.deployment}=${deployment}`, `${LABEL.role}=backup`] }
      const left = await engine.call(
        'list containers that copy files',
        DEADLINE.read,
        (docker, abortSignal) => docker.listContainers({ all: true, filters, abortSignal }),
      )
      for (const { Id } of left) await remove(Id)
    },
  }
}
