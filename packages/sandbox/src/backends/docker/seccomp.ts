import { readFile } from 'node:fs/promises'
import { fileURLToPath } from 'node:url'

import { z } from 'zod'

import type { SandboxProfile } from '../../backend.ts'
import { SandboxError } from '../../errors.ts'

/**
 * In the compiled package first, then in the repository (the same depth from `src` and from
 * `dist`).
 */
const FOLDERS = ['../../', '../../../../../docker/sandbox/']

const ordinarySchema = z.looseObject({
  defaultAction: z.literal('SCMP_ACT_ERRNO'),
  syscalls: z.array(z.unknown()).optional(),
})

/**
 * Text of a seccomp profile in one line, because the engine's API expects content, not a path. The
 * debug profile is the ordinary one with the rules of seccomp-debug.json. `file` replaces the
 * ordinary one. Rejects with `invalid_arguments` when a file cannot be read or it is not a profile
 * that refuses by default.
 */
export async function readSeccompProfile(
  profile: SandboxProfile = 'default',
  file?: string,
): Promise<string> {
  const ordinary = await readJson(file === undefined ? shipped('seccomp.json') : [file], ordinarySchema)
  if (profile === 'default') return JSON.stringify(ordinary)
  const additions = await readJson(shipped('seccomp-debug.json'), z.array(z.unknown()))
  return JSON.stringify({ ...ordinary, syscalls: [...(ordinary.syscalls ?? []), ...additions] })
}

function shipped(name: string): string[] {
  return FOLDERS.map((folder) => fileURLToPath(new URL(`${folder}${name}`, import.meta.url)))
}

/** The first of these files that can be read. */
async function readJson<T>(files: string[], schema: z.ZodType<T>): Promise<T> {
  let failure: unknown
  for (const candidate of files) {
    try {
      return parse(await readFile(candidate, 'utf8'), candidate, schema)
    } catch (error) {
      if (error instanceof SandboxError) throw error
      failure = error
    }
  }
  throw new SandboxError('invalid_arguments', `The seccomp profile cannot be read: ${files.join(', ')}.`, {
    cause: failure,
  })
}

function parse<T>(text: string, file: string, schema: z.ZodType<T>): T {
  let value: unknown
  try {
    value = JSON.parse(text)
  } catch (error) {
    throw new SandboxError('invalid_arguments', `The seccomp profile ${file} is not JSON.`, { cause: error })
  }
  const parsed = schema.safeParse(value)
  if (parsed.success) return parsed.data
  throw new SandboxError(
    'invalid_arguments',
    `The seccomp profile ${file} does not refuse by default (defaultAction SCMP_ACT_ERRNO).`,
  )
}
