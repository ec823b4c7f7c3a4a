/** The agent's status: whether it can work, and if not, the reason for an operator. */
import { readFile } from 'node:fs/promises'
import { fullImageState } from '@sandlot/shared/account/api'
import { LOW_DISK_BYTES } from '@sandlot/shared/config/low-disk'
import type { FullImageState } from '@sandlot/shared/config/full-image'
import type { AgentStatus } from '@sandlot/shared/acp/meta'
import { formatBytes } from '@sandlot/shared/base/format-bytes'
import type { Mode } from '@sandlot/shared/chat/mode'
import { healthText } from '@sandlot/storage/plain-words'
import type { StorageError } from '@sandlot/storage/storage-error'
import { type Models, modelsOf } from '../loop/model-choice.ts'

/** Milliseconds for which an answer about the sandboxes is reused. */
const REUSED_MS = 2_000

interface StatusParts {
  models: Models
  defaultMode: Mode
  toolsEnabled: boolean
  probeSandboxes: () => Promise<{ ok: boolean; message: string }>
  /** Why nothing can be stored; undefined: it can. */
  storeProblem: () => Promise<StorageError | undefined>
  /** Health of these models' providers. */
  modelReasons: (names: readonly string[]) => AgentStatus['reasons']
  /** Free bytes of the disk of the data. */
  freeBytes: () => number
  /** The launcher's file with the state of the larger sandbox image. */
  fullImageFile: string
}

const FULL_IMAGE_WORDS = {
  building: { ok: true, message: 'The sandbox image with more tools is being built.' },
  failed: {
    ok: false,
    message: 'The sandbox image with more tools could not be built; see log/full-image.log.',
  },
} as const

async function readFullImage(file: string): Promise<FullImageState | undefined> {
  try {
    return fullImageState.parse(JSON.parse(await readFile(file, 'utf8')))
  } catch {
    // Absent, or being written just now.
    return undefined
  }
}

/** Nothing where it cannot be asked. What was low is well again only with a quarter more. */
function diskReason(freeBytes: () => number): () => AgentStatus['reasons'] {
  let low = false
  return () => {
    try {
      const free = freeBytes()
      low = free < LOW_DISK_BYTES * (low ? 1.25 : 1)
      const room = `${formatBytes(Math.max(free, 0))} free for chats and outputs`
      return [{ part: 'disk', ok: !low, message: low ? `There are only ${room}.` : `There are ${room}.` }]
    } catch {
      return [] // a disk that does not answer is what the store's own check is about
    }
  }
}

/**
 * Returns a function that reports the status. `ready` needs the store only: without sandboxes chat
 * still works.
 */
export function makeStatus(parts: StatusParts): () => Promise<AgentStatus> {
  const { models, defaultMode, toolsEnabled, probeSandboxes, storeProblem } = parts
  const disk = diskReason(parts.freeBytes)
  let last: { at: number; probed: Promise<{ ok: boolean; message: string }> } | undefined
  return async () => {
    const at = performance.now()
    if (last === undefined || at - last.at > REUSED_MS) last = { at, probed: probeSandboxes() }
    const [sandbox, problem, fullImage] = await Promise.all([
      last.probed,
      storeProblem(),
      readFullImage(parts.fullImageFile),
    ])
    const { model } = models
    // The demo has neither a key nor a provider.
    const served = [...modelsOf(models), ...(models.fallbacks ?? [])].filter(({ demo }) => !demo)
    return {
      ready: problem === undefined,
      reasons: [
        { part: 'store', ok: problem === undefined, message: `The store of chats ${healthText(problem)}.` },
        {
          part: 'model',
          ok: true,
          message: model.demo
            ? 'No model is configured, so the built-in demo answers. An administrator adds one under Settings, Models.'
            : `The model is ${model.name}.`,
        },
        ...parts.modelReasons(served.map(({ name }) => name)),
        ...disk(),
        ...(toolsEnabled
          ? []
          : [{ part: 'tools', ok: true, message: 'Tools are switched off (SANDLOT_TOOLS_ENABLED).' }]),
        { part: 'sandbox', ...sandbox },
        ...(fullImage === undefined ? [] : [{ part: 'sandbox-full', ...FULL_IMAGE_WORDS[fullImage.state] }]),
      ],
      model: { name: model.name, demo: model.demo, images: model.images ?? false },
      models: modelsOf(models).map((one) => ({
        name: one.name,
        thoughtLevels: [...(one.thoughtLevels ?? [])],
        images: one.images ?? false,
      })),
      defaultMode,
      fullImage,
    }
  }
}
