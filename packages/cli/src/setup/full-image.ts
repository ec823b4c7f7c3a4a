/**
 * The larger sandbox image, built while Sandlot already runs. Its state is in a file that ai-agent
 * reads for the page.
 */
import { mkdirSync, rmSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { FULL_IMAGE_FILE, type FullImageState } from '@sandlot/shared/config/full-image'
import { SANDBOX_BACKENDS } from '@sandlot/shared/config/sandbox-backends'
import { messageOf } from '@sandlot/shared/base/errors'
import type { CliConfig } from '../config.ts'
import { run } from '../programs/run.ts'
import type { Steps } from '../steps.ts'

/** Removes the state of an earlier run. */
export function clearFullImageState(config: Pick<CliConfig, 'data'>): void {
  writeState(join(config.data, FULL_IMAGE_FILE), undefined)
}

/**
 * Builds the image, unless the operator has an image of their own or the backend has no engine. One
 * attempt per `up`. Never rejects.
 */
export async function buildFullImage(
  config: CliConfig,
  { note }: Pick<Steps, 'note'>,
  signal: AbortSignal,
): Promise<void> {
  if (!SANDBOX_BACKENDS[config.backend].needsEngine || config.sandboxImage !== undefined) return
  const file = join(config.data, FULL_IMAGE_FILE)
  const log = join(config.data, 'log', 'full-image.log')
  try {
    await run(join(config.root, 'docker', 'build-images.sh'), ['--full'], {
      cwd: config.root,
      environment: config.environment,
      log,
      fix: '',
      signal,
      onLine: (line) => {
        if (line.includes('build sandlot/sandbox-full')) writeState(file, { state: 'building' })
      },
    })
    writeState(file, undefined)
  } catch (error) {
    if (signal.aborted) return writeState(file, undefined)
    writeState(file, { state: 'failed' })
    note(
      `! Couldn’t build the image with more tools (numpy, pandas, ffmpeg …). Sandboxes use the smaller one, and the next ./sandlot up tries again. ${messageOf(error)}`,
    )
  }
}

function writeState(file: string, state: FullImageState | undefined): void {
  try {
    if (state === undefined) return rmSync(file, { force: true })
    mkdirSync(dirname(file), { recursive: true })
    writeFileSync(file, JSON.stringify(state), { mode: 0o640 })
  } catch {
    // On a full disk the page shows no state of the image.
  }
}
