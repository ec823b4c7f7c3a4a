/** Files of a workspace by name. */
import { SandboxError } from '@sandlot/sandbox/errors'
import type { FileStat, SandboxFiles } from '@sandlot/sandbox/files'
import { pauseWhenDue } from '@sandlot/shared/node/time-slices'
import type { FilesFound } from '@sandlot/shared/workspace/files'
import { LRUCache } from 'lru-cache'

/** The most entries of one search. Deep, hidden and installed folders are searched last. */
const MOST_ENTRIES = 50_000
const MOST_MS = 3_000
const SIDE_BY_SIDE = 8
/** From the start of a walk: a search as one types makes one. */
const CACHE_MS = 5_000
const MAX_CACHED = 4
const ENTRIES_PER_PAUSE = 256

interface Names {
  readonly entries: readonly FileStat[]
  /** Not every directory was looked into. */
  readonly more: boolean
}

interface Fitting {
  entry: FileStat
  /** More is better. */
  fits: number
  /** Among equal matches: less is better, then the earlier. */
  orElse: number
}

/** The best so many. */
class Best {
  readonly #most: number
  #best: Fitting[] = []
  count = 0

  constructor(most: number) {
    this.#most = most
  }

  add(one: Fitting): void {
    this.count++
    // Sorted now and then: all at once would hold the process.
    if (this.#best.push(one) >= 4 * this.#most) this.#cut()
  }

  take(): FileStat[] {
    this.#cut()
    return this.#best.map(({ entry }) => entry)
  }

  #cut(): void {
    const sorted = this.#best.toSorted((a, b) => b.fits - a.fits || a.orElse - b.orElse)
    this.#best = sorted.slice(0, this.#most)
  }
}

/** Searches of several people. */
export class FileSearch {
  readonly #walks = new LRUCache<string, Promise<Names>>({ max: MAX_CACHED })

  /** The best `most` entries. Without a query the ones that were changed last. */
  async find(userId: string, files: SandboxFiles, query: string, most: number): Promise<FilesFound> {
    const { entries, more } = await this.#names(userId, files)
    const wanted = query.normalize().toLowerCase().replaceAll(/\s+/g, '')
    const best = new Best(most)
    for (const [index, entry] of entries.entries()) {
      // A large workspace must not hold the process.
      if (index % ENTRIES_PER_PAUSE === 0) await pauseWhenDue()
      const { kind, path, modifiedAt } = entry
      const fits = wanted === '' ? 0 : fitness(path, wanted)
      if (fits > 0) best.add({ entry, fits, orElse: path.length })
      if (wanted === '' && kind === 'file' && !isAside(path)) best.add({ entry, fits: modifiedAt, orElse: 0 })
    }
    return {
      entries: best.take().map(({ path, kind, size, modifiedAt }) => ({ path, kind, size, modifiedAt })),
      more: more || best.count > most,
    }
  }

  /** Its files have changed. */
  forget(userId: string): void {
    this.#walks.delete(userId)
  }

  async #names(userId: string, files: SandboxFiles): Promise<Names> {
    const known = this.#walks.get(userId)
    if (known !== undefined) return known
    const names = walk(files)
    this.#walks.set(userId, names)
    const expire = (): void => {
      if (this.#walks.peek(userId) === names) this.#walks.delete(userId)
    }
    setTimeout(expire, CACHE_MS).unref()
    // One that failed is not kept.
    names.catch(expire)
    return names
  }
}

async function walk(files: SandboxFiles): Promise<Names> {
  const until = performance.now() + MOST_MS
  const entries: FileStat[] = []
  let more = false
  let level = ['']
  let aside: string[] = []
  while (level.length > 0) {
    const below: string[] = []
    for (let at = 0; at < level.length; at += SIDE_BY_SIDE) {
      if (entries.length >= MOST_ENTRIES || performance.now() > until) return { entries, more: true }
      const lists = await Promise.all(
        level.slice(at, at + SIDE_BY_SIDE).map((path) => listIfThere(files, path)),
      )
      for (const list of lists) {
        more ||= list === 'too_large'
        if (list === 'too_large') continue
        for (const entry of list) {
          if (entry.path === '.tool-outputs') continue
          entries.push(entry)
          if (entry.kind === 'directory') (isAside(entry.path) ? aside : below).push(entry.path)
        }
      }
    }
    level = below
    if (level.length > 0) continue
    level = aside
    aside = []
  }
  return { entries, more }
}

/** Empty where it cannot be read, or has been removed since. */
async function listIfThere(files: SandboxFiles, path: string): Promise<FileStat[] | 'too_large'> {
  try {
    return await files.withoutLinks.list(path)
  } catch (error) {
    if (!(error instanceof SandboxError)) throw error
    if (error.code === 'too_large') return 'too_large'
    if (
      [
        'not_found',
        'not_regular',
        'permission',
        'path_changed',
        'invalid_arguments',
        'path_outside',
      ].includes(error.code)
    )
      return []
    throw error
  }
}

function isAside(path: string): boolean {
  return /(^|\/)(\.[^/]+|node_modules|__pycache__)(\/|$)/.test(path)
}

/** The quality of a path's match, 0 for none: the letters in their order, better in one piece. */
function fitness(path: string, wanted: string): number {
  const all = path.normalize().toLowerCase()
  const name = all.slice(all.lastIndexOf('/') + 1)
  const penalty = isAside(path) ? 0.5 : 1
  if (name === wanted) return 100 * penalty
  if (name.startsWith(wanted)) return 90 * penalty
  const inName = name.indexOf(wanted)
  if (inName > 0) return (/[\s._-]/.test(name.charAt(inName - 1)) ? 80 : 70) * penalty
  if (all.includes(wanted)) return 60 * penalty
  const scattered = spread(name, wanted) ?? spread(all, wanted)
  return scattered === undefined ? 0 : (50 / (1 + scattered / wanted.length)) * penalty
}

/** Letters between the first and the last one of `wanted` that are not of it. */
function spread(text: string, wanted: string): number | undefined {
  let at = -1
  let first = -1
  for (const letter of wanted) {
    at = text.indexOf(letter, at + 1)
    if (at < 0) return undefined
    if (first < 0) first = at
  }
  return at - first + 1 - wanted.length
}
