/**
 * A container that runs tar on one volume: no network, and no right but to read or to write files.
 */
import type { Duplex } from 'node:stream'

import { LABEL } from '../../names.ts'
import { tarArguments } from '../copy-tar.ts'
import { unless } from './engine-error.ts'
import { DEADLINE, type Engine } from './engine.ts'
import { unframed } from './stream.ts'

/** Characters of tar's last error lines that are kept. */
const MOST_COMPLAINTS = 2_000
/** CPU shares next to everything else on the host; 1024 is ordinary. */
const LEAST_SHARE = 2

interface TarJob {
  deployment: string
  image: string
  volume: string
  act: 'read' | 'write'
}

export class TarHelper {
  readonly #engine: Engine
  readonly #id: string

  private constructor(engine: Engine, id: string) {
    this.#engine = engine
    this.#id = id
  }

  /** Created and not started. */
  static async create(engine: Engine, job: TarJob): Promise<TarHelper> {
    const container = await engine.call('make a container that copies files', DEADLINE.change, (docker) =>
      docker.createContainer(helperBody(job)),
    )
    return new TarHelper(engine, container.id)
  }

  /** Before `start`, so that no output is missed. */
  async attach(): Promise<{ stream: Duplex; complaints: () => string }> {
    let complaints = ''
    const stream = unframed(await this.#engine.attach(this.#id), {
      onStderr: (bytes) => {
        complaints = (complaints + bytes.toString('utf8')).slice(-MOST_COMPLAINTS)
      },
    })
    return { stream, complaints: () => complaints.trim() }
  }

  async start(): Promise<void> {
    await this.#engine.call('start a container that copies files', DEADLINE.change, (docker, signal) =>
      docker.getContainer(this.#id).start({ abortSignal: signal }),
    )
  }

  async exitCode(): Promise<number> {
    const { StatusCode } = await this.#engine.call('wait for tar', DEADLINE.change, (docker, signal) =>
      docker.getContainer(this.#id).wait({ abortSignal: signal }),
    )
    return Number(StatusCode)
  }

  remove(): Promise<void> {
    return removeHelper(this.#engine, this.#id)
  }
}

export async function removeHelper(engine: Engine, id: string): Promise<void> {
  await engine.call('remove a container that copies files', DEADLINE.change, (docker, signal) =>
    unless([404, 409], docker.getContainer(id).remove({ force: true, v: false, abortSignal: signal })),
  )
}

function helperBody({ deployment, image, volume, act }: TarJob) {
  const reads = act === 'read'
  return {
    Image: image,
    Entrypoint: ['tar'],
    Cmd: tarArguments(act, '/volume'),
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
          Type: 'volume' as const,
          Source: volume,
          Target: '/volume',
          ReadOnly: reads,
          VolumeOptions: { NoCopy: true, Labels: {}, DriverConfig: { Name: 'local', Options: {} } },
        },
      ],
    },
  }
}
