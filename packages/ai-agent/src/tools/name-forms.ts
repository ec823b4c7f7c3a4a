/**
 * Spellings of one name in Unicode: macOS decomposes letters with accents (NFD), models and people
 * write them composed (NFC). They look the same, so a name that differs in nothing else is meant.
 */
import { SandboxError } from '@sandlot/sandbox/errors'
import type { SandboxFiles } from '@sandlot/sandbox/files'

const OTHER_THAN_ASCII = /[^\0-\x7F]/

/** `path` as the workspace has it: a name that is not there becomes the one that looks the same. */
export async function findStoredPath(files: SandboxFiles, path: string): Promise<string> {
  if (!OTHER_THAN_ASCII.test(path) || (await exists(files, path))) return path
  let place = ''
  for (const name of path.split('/')) {
    const written = place === '' ? name : `${place}/${name}`
    place = (await exists(files, written)) ? written : ((await findLookalike(files, place, name)) ?? written)
  }
  return place
}

/** The text itself, composed and decomposed. Always three: arguments of a script by position. */
export function spellingsOf(glob: string): [string, string, string] {
  return [glob, glob.normalize('NFC'), glob.normalize('NFD')]
}

/** Undefined: there is none, or there are several. */
async function findLookalike(files: SandboxFiles, folder: string, name: string): Promise<string | undefined> {
  if (!OTHER_THAN_ASCII.test(name)) return undefined
  const entries = (await unlessRefused(files.list(folder))) ?? []
  const composed = name.normalize('NFC')
  const [only, ...others] = entries.filter(
    ({ path }) => path.slice(path.lastIndexOf('/') + 1).normalize('NFC') === composed,
  )
  return others.length > 0 ? undefined : only?.path
}

async function exists(files: SandboxFiles, path: string): Promise<boolean> {
  return (await unlessRefused(files.stat(path))) !== undefined
}

/** The use of the path reports why it is refused. */
async function unlessRefused<T>(pending: Promise<T>): Promise<T | undefined> {
  try {
    return await pending
  } catch (error) {
    if (error instanceof SandboxError) return undefined
    throw error
  }
}
