import { parseDockerHost, type EngineTls } from './connection.ts'
import { createEngine, DEADLINE } from './engine.ts'

/** As much of the engine's `/info` and `/version` as is looked at, in its own spelling. */
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
  }
  version: { Components?: { Name?: string; Version?: string }[] | null }
}

/** What the engine says about itself. Rejects with a `SandboxError`: `engine_unavailable`. */
export async function describeEngine(at: {
  dockerHost?: string
  tls?: EngineTls
}): Promise<EngineDescription & { local: boolean }> {
  const address = parseDockerHost(at.dockerHost, at.tls)
  const engine = createEngine(address)
  const [info, version] = await engine.call('tell about itself', DEADLINE.read, (docker) =>
    Promise.all([docker.info() as Promise<EngineDescription['info']>, docker.version()]),
  )
  return { info, version, local: address.kind === 'unix' }
}
