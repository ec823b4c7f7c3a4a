import type { BackendVolume, BackendVolumes } from '../../backend.ts'
import { SandboxError, workspaceMissing } from '../../errors.ts'
import { LABEL, slotLabels } from '../../names.ts'
import { absentIf404, unless } from './engine-error.ts'
import { DEADLINE, type Engine } from './engine.ts'
import type { QuotaKind } from './capabilities.ts'
import { isOurs } from './states.ts'

/** Volumes of one deployment. Every workspace is a named volume with our labels. */
export function createVolumes(
  engine: Engine,
  deployment: string,
  quota: () => Promise<QuotaKind>,
): BackendVolumes {
  return {
    emptyFirst: true,

    async has(name, signal) {
      const labels = await volumeLabels(engine, name, signal)
      // An engine creates one without labels when a container is started by hand after its own
      // volume was removed.
      return labels !== undefined && isOurs(deployment, labels)
    },

    async ensure(spec, signal) {
      const found = await volumeLabels(engine, spec.volume, signal)
      if (found && !isOurs(deployment, found)) {
        throw new SandboxError(
          'exists',
          `The volume ${spec.volume} belongs to something else. Remove or rename it.`,
        )
      }
      if (found) return
      if (spec.hasWorkspace) throw workspaceMissing(spec.volume)
      // A volume created again under an old name would silently have no size until the engine
      // restarts; a slot's name is never used twice, and sbxd checks the size inside.
      const sized = (await quota()) === 'hard'
      await engine.call(
        'make a volume',
        DEADLINE.change,
        (docker, inner) =>
          docker.createVolume({
            Name: spec.volume,
            Driver: 'local',
            ...(sized ? { DriverOpts: { size: String(spec.limits.diskBytes) } } : {}),
            Labels: slotLabels(deployment, spec),
            abortSignal: inner,
          }),
        signal,
      )
    },

    remove: (name) => removeVolume(engine, deployment, name),
    list: () => listVolumes(engine, deployment),
  }
}

/** Labels of any volume, also of one that is not ours; undefined where there is none. */
export async function volumeLabels(
  engine: Engine,
  name: string,
  signal?: AbortSignal,
): Promise<Record<string, string> | undefined> {
  const volume = await engine.call(
    'inspect the volume',
    DEADLINE.read,
    (docker, inner) => absentIf404(docker.getVolume(name).inspect({ abortSignal: inner })),
    signal,
  )
  return volume && (volume.Labels ?? {})
}

/** Every workspace of the deployment. */
async function listVolumes(engine: Engine, deployment: string): Promise<BackendVolume[]> {
  const filters = JSON.stringify({
    label: [`${LABEL.deployment}=${deployment}`, `${LABEL.role}=sandbox`],
  })
  const { Volumes } = await engine.call('list the volumes', DEADLINE.read, (docker, abortSignal) =>
    docker.listVolumes({ filters, abortSignal }),
  )
  return Volumes.map(({ Name, Labels }) => ({ name: Name, labels: Labels ?? {} }))
}

/** Idempotent. Rejects with `permission` for a volume that is not one of the deployment's. */
export async function removeVolume(engine: Engine, deployment: string, name: string): Promise<void> {
  const labels = await volumeLabels(engine, name)
  if (!labels) return
  if (!isOurs(deployment, labels)) throw notOurs(name)
  await engine.call('remove the volume', DEADLINE.change, (docker, signal) =>
    unless([404], docker.getVolume(name).remove({ abortSignal: signal })),
  )
}

export function notOurs(name: string): SandboxError {
  return new SandboxError('permission', `The volume ${name} is not one of this deployment's.`)
}
