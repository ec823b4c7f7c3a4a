import type { EngineDescription } from '../../doctor/engine.ts'
import { parseDockerHost, type EngineTls } from './connection.ts'
import { createEngine, DEADLINE } from './engine.ts'

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
