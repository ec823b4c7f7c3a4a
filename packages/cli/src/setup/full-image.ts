/**
 * The larger image of the sandboxes, made while Sandlot already runs. Its state is in a file that
 * ai-agent reads for the page; without the file the page shows nothing.
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
export function forgetFullImage(config: Pick<CliConfig, 'data'>): void {
  say(join(config.data, FULL_IMAGE_FILE), undefined)
}

/**
 * Nothing where the operator has an image of their own, which is the only one, and on a backend
 * without an engine. Resolves when it is there, could not be made, or `signal` aborts. Never
 * rejects. One try: the next `up` makes the next.
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
        // Up to date: print nothing.
        if (line.includes('build sandlot/sandbox-full')) say(file, { state: 'building' })
      },
    })
    say(file, undefined)
  } catch (error) {
    if (signal.aborted) return say(file, undefined)
    say(file, { state: 'failed' })
    note(
      `! The image with more tools (numpy, pandas, ffmpeg …) could not be built: ${messageOf(error)} Sandboxes go on with the smaller one, and the next ./sandlot up tries again.`,
    )
  }
}

function say(file: string, state: FullImageState | undefined): void {
  try {
    if (state === undefined) return rmSync(file, { force: true })
    mkdirSync(dirname(file), { recursive: true })
    writeFileSync(file, JSON.stringify(state), { mode: 0o640 })
  } catch {
    // A full disk: the page then shows no state of the image, which is harmless.
  }
}
