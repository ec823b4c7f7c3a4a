import { readFile } from 'node:fs/promises'
import { fileURLToPath } from 'node:url'

import { SandboxError } from '../../errors.ts'

/**
 * In the compiled package first, then in the repository (the same depth from `src` and from
 * `dist`).
 */
const DEFAULT_FILES = ['../../seccomp.json', '../../../../../docker/sandbox/seccomp.json'].map((path) =>
  fileURLToPath(new URL(path, import.meta.url)),
)

/**
 * Text of the seccomp profile in one line, because the engine's API expects content, not a path.
 * Rejects with `invalid_arguments` when no file can be read or it is not a profile that refuses by
 * default.
 */
export async function readSeccompProfile(file?: string): Promise<string> {
  const files = file === undefined ? DEFAULT_FILES : [file]
  let failure: unknown
  for (const candidate of files) {
    try {
      return compact(await readFile(candidate, 'utf8'), candidate)
    } catch (error) {
      if (error instanceof SandboxError) throw error
      failure = error
    }
  }
  throw new SandboxError('invalid_arguments', `The seccomp profile cannot be read: ${files.join(', ')}.`, {
    cause: failure,
  })
}

function compact(text: string, file: string): string {
  let profile: unknown
  try {
    profile = JSON.parse(text)
  } catch (error) {
    throw new SandboxError('invalid_arguments', `The seccomp profile ${file} is not JSON.`, { cause: error })
  }
  const refuses =
    typeof profile === 'object' &&
    profile !== null &&
    'defaultAction' in profile &&
    profile.defaultAction === 'SCMP_ACT_ERRNO'
  if (!refuses) {
    throw new SandboxError(
      'invalid_arguments',
      `The seccomp profile ${file} does not refuse by default (defaultAction SCMP_ACT_ERRNO).`,
    )
  }
  return JSON.stringify(profile)
}
