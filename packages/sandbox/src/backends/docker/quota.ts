import { randomInt } from 'node:crypto'
import { newSlotName, poolName, slotLabels, UID_RANGE } from '../../names.ts'
import { engineAnswer } from './engine-error.ts'
import { type EngineInfo, type QuotaKind, readInfo } from './capabilities.ts'
import { DEADLINE, type Engine } from './engine.ts'

/** Size of the probe's volume, to which nothing is written. */
const PROBE_BYTES = 64 * 1024 * 1024

/**
 * Probes whether a volume of the `local` driver may have a size: only where the engine's data root
 * is on xfs mounted with project quotas (`pquota`). Probed once, by creating such a volume and
 * removing it; a failure is not remembered, and neither is the `soft` of an engine that failed
 * (5xx) rather than refused. On a data root known to be another file system nothing is created.
 */
export function createQuotaProbe(engine: Engine, deployment: string): () => Promise<QuotaKind> {
  let known: Promise<QuotaKind> | undefined
  return () => {
    // Shared by all callers, so no caller's signal may end it.
    known ??= probe(engine, deployment).then(
      ({ kind, final }) => {
        if (!final) known = undefined
        return kind
      },
      (error: unknown) => {
        known = undefined
        throw error
      },
    )
    return known
  }
}

interface Found {
  kind: QuotaKind
  /** False: the next probe may differ. */
  final: boolean
}

async function probe(engine: Engine, deployment: string): Promise<Found> {
  const on = backingFileSystem(await readInfo(engine))
  if (on !== undefined && on !== 'xfs') return { kind: 'soft', final: true }
  return engine.call(
    'try a volume with a size',
    DEADLINE.change,
    async (docker, abortSignal): Promise<Found> => {
      const slot = newSlotName()
      const name = poolName(deployment, slot)
      const uid = randomInt(UID_RANGE.first, UID_RANGE.last + 1)
      try {
        await docker.createVolume({
          Name: name,
          Driver: 'local',
          DriverOpts: { size: String(PROBE_BYTES) },
          Labels: slotLabels(deployment, { slot, uid, volume: name }),
          abortSignal,
        })
      } catch (error) {
        // The engine's own refusal; any other error is no answer.
        const answer = engineAnswer(error)
        if (answer === undefined) throw error
        return { kind: 'soft', final: answer.statusCode < 500 }
      }
      try {
        await docker.getVolume(name).remove({ abortSignal })
      } catch (error) {
        // The probe succeeded; the next `sandlot sandbox prune` removes the ownerless empty volume.
        if (engineAnswer(error) === undefined) throw error
      }
      return { kind: 'hard', final: true }
    },
  )
}

/**
 * From the storage driver; undefined where it does not report it, as with containerd's snapshots.
 */
function backingFileSystem(info: Pick<EngineInfo, 'DriverStatus'>): string | undefined {
  return info.DriverStatus?.find(([name]) => name === 'Backing Filesystem')?.[1]
}
