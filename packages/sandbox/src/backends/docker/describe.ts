import { parseDockerHost, type EngineTls } from './connection.ts'
import { createEngine, DEADLINE } from './engine.ts'
import { absentIf404 } from './engine-error.ts'

/** Used fields of the engine's `/info` and `/version`, in its own spelling. */
export interface EngineDescription {
  info: {
    OperatingSystem?: string
    Architecture?: string
    ServerVersion?: string
    SecurityOptions?: string[] | null
    CgroupVersion?: string
    LiveRestoreEnabled?: boolean
    SwapLimit?: boolean
    MemoryLimit?: boolean
    PidsLimit?: boolean
    CpuCfsQuota?: boolean
    DefaultRuntime?: string
    Runtimes?: Record<string, unknown> | null
    Driver?: string
    DockerRootDir?: string
    KernelVersion?: string
  }
  version: { Components?: { Name?: string; Version?: string }[] | null }
}

/** The engine's description of itself. Rejects with `engine_unavailable`. */
export async function describeEngine(at: {
  dockerHost?: string
  tls?: EngineTls
}): Promise<EngineDescription & { local: boolean }> {
  const address = parseDockerHost(at.dockerHost, at.tls)
  const engine = createEngine(address)
  const [info, version] = await engine.call('describe itself', DEADLINE.read, (docker) =>
    Promise.all([docker.info() as Promise<EngineDescription['info']>, docker.version()]),
  )
  return { info, version, local: address.kind === 'unix' }
}

/** Rejects with `engine_unavailable`. */
export async function hasImage(
  image: string,
  at: { dockerHost?: string; tls?: EngineTls },
): Promise<boolean> {
  const engine = createEngine(parseDockerHost(at.dockerHost, at.tls))
  const found = await engine.call('find the sandbox image', DEADLINE.read, (docker) =>
    absentIf404(docker.getImage(image).inspect()),
  )
  return found !== undefined
}
