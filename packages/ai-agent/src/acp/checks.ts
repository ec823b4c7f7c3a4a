/** The agent’s part of what `./sandlot doctor` says, of the running deployment. */
import { judgeGate, judgeIsolation, judgeOwnerless, OWNERLESS } from '@sandlot/sandbox/doctor/deployment'
import { examineKubernetes } from '@sandlot/sandbox/doctor/cluster'
import { examineEngine } from '@sandlot/sandbox/doctor/machine'
import { SANDBOX_BACKENDS, type SandboxBackendName } from '@sandlot/shared/config/sandbox-backends'
import { messageOf } from '@sandlot/shared/base/errors'
import { type Finding, unknown } from '@sandlot/shared/base/finding'
import { dataFolderCheck, modelCheck, nodeCheck } from '@sandlot/shared/node/checks/deployment'

type EnginePlace = Pick<Parameters<typeof examineEngine>[0], 'dockerHost' | 'tls' | 'runtime'>

interface CheckParts {
  /** The agent’s configuration. */
  config: {
    dataFolder: string
    deployment: string | undefined
    sandbox: EnginePlace & { backend: SandboxBackendName; images: { image: string } } & Pick<
        Parameters<typeof examineKubernetes>[0],
        'kubernetes' | 'limits'
      >
  }
  /** The model that answers; undefined: the demo. */
  model: string | undefined
  /** Volumes that no user is known to have. */
  ownerless: () => Promise<readonly string[]>
}

/** Makes nothing, and never rejects. */
export async function agentChecks({ config, model, ownerless }: CheckParts): Promise<Finding[]> {
  const { backend, dockerHost, tls, images, runtime, kubernetes, limits } = config.sandbox
  const { isolates, manyHosts, needsEngine } = SANDBOX_BACKENDS[backend]
  const [engine, leftovers] = await Promise.all([
    needsEngine
      ? examineEngine({ dockerHost, tls, image: images.image, runtime })
      : manyHosts
        ? examineKubernetes({ kubernetes, image: images.image, limits, runtime, attack: false })
        : [],
    ownerless().then(judgeOwnerless, (error: unknown) =>
      unknown('warn', OWNERLESS.id, OWNERLESS.name, `they cannot be asked for: ${messageOf(error)}`),
    ),
  ])
  const hasGate = config.deployment !== undefined
  return [
    nodeCheck(),
    dataFolderCheck(config.dataFolder),
    modelCheck(model),
    ...(isolates ? [] : [judgeIsolation(backend)]),
    ...(needsEngine ? [judgeGate('warn', hasGate, dockerHost ?? 'its usual socket')] : []),
    leftovers,
    ...engine,
  ]
}
