/**
 * Files that people removed from their workspace: `.tool-outputs/.trash/<when>-<depth>-<random>/`
 * has each at its old path, `depth` names long. No other record exists, so that a full disk refuses
 * no removal.
 */
import { randomBytes } from 'node:crypto'
import { SandboxError } from '@sandlot/sandbox/errors'
import type { SandboxFiles } from '@sandlot/sandbox/files'
import { SandlotError } from '@sandlot/shared/base/errors'
import { MAX_TRASHED, TRASH, TRASH_DAYS, type TrashList } from '@sandlot/shared/workspace/files'

const DAY_MS = 86_400_000
/** Other names for something that is restored to where something is. */
const MOST_NAMES = 100

/** `path` must be without symbolic links but for its last name. Returns the id. */
export async function moveToTrash(files: SandboxFiles, path: string): Promise<string> {
  const depth = path.split('/').length
  const id = `${Date.now()}-${depth}-${randomBytes(4).toString('hex')}`
  const place = `${TRASH}/${id}/${path}`
  await files.mkdir(parentOf(place))
  try {
    await files.rename(path, place)
  } catch (error) {
    await files.remove(`${TRASH}/${id}`, { recursive: true })
    throw error
  }
  await purge(files)
  return id
}

/** Returns where it is. Throws `not_found` for what is not in the trash any more. */
export async function restore(files: SandboxFiles, id: string): Promise<string> {
  const path = await pathIn(files, id)
  if (path === undefined) throw new SandlotError('not_found', 'It is no longer in the trash.')
  let made = false
  for (let n = 1; ; n++) {
    const place = n === 1 ? path : numbered(path, n)
    try {
      await files.rename(`${TRASH}/${id}/${path}`, place, { isNew: true })
    } catch (error) {
      const code = error instanceof SandboxError ? error.code : undefined
      if (code === 'exists' && n < MOST_NAMES) continue
      if (code !== 'not_found' || made) throw error
      // Only where it was removed in between: a full disk refuses also one that exists.
      await files.mkdir(parentOf(path))
      made = true
      n -= 1
      continue
    }
    await files.remove(`${TRASH}/${id}`, { recursive: true })
    return place
  }
}

export async function listTrash(files: SandboxFiles): Promise<TrashList> {
  const entries: TrashList['entries'] = []
  for (const id of (await idsOf(files)).slice(0, MAX_TRASHED)) {
    const path = await pathIn(files, id)
    if (path !== undefined) entries.push({ id, path, removedAt: Number(id.split('-')[0]) })
  }
  return { entries }
}

export async function emptyTrash(files: SandboxFiles): Promise<void> {
  try {
    await files.remove(TRASH, { recursive: true })
  } catch (error) {
    if (!(error instanceof SandboxError) || error.code !== 'not_found') throw error
  }
}

/** Removes entries that are too old, and the oldest while there are too many. */
export async function purge(files: SandboxFiles): Promise<void> {
  const ids = await idsOf(files)
  const oldest = Date.now() - TRASH_DAYS * DAY_MS
  for (const [index, id] of ids.entries()) {
    if (index >= MAX_TRASHED || Number(id.split('-')[0]) < oldest)
      await files.remove(`${TRASH}/${id}`, { recursive: true })
  }
}

/** The newest first. */
async function idsOf(files: SandboxFiles): Promise<string[]> {
  const names = (await listed(files, TRASH)).map((path) => path.slice(TRASH.length + 1))
  return names.filter((name) => /^\d+-\d+-/.test(name)).toSorted((a, b) => parseInt(b) - parseInt(a))
}

/** Undefined when it has gone. */
async function pathIn(files: SandboxFiles, id: string): Promise<string | undefined> {
  const depth = Number(id.split('-')[1])
  let at = `${TRASH}/${id}`
  for (let n = 0; n < depth; n++) {
    const [first] = await listed(files, at)
    if (first === undefined) return undefined
    at = first
  }
  return at.slice(TRASH.length + id.length + 2)
}

async function listed(files: SandboxFiles, path: string): Promise<string[]> {
  try {
    return (await files.list(path)).map((entry) => entry.path)
  } catch (error) {
    if (error instanceof SandboxError && error.code === 'not_found') return []
    throw error
  }
}

/** `notes.txt` → `notes (2).txt` */
function numbered(path: string, n: number): string {
  const [, stem = path, ending = ''] = /^(.*[^/])(\.[^./]+)$/.exec(path) ?? []
  return `${stem} (${n})${ending}`
}

function parentOf(path: string): string {
  return path.includes('/') ? path.slice(0, path.lastIndexOf('/')) : ''
}
