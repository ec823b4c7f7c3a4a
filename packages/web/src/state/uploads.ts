/**
 * Files on their way to the workspace. Outside the page that shows them: closing it stops nothing.
 */
import { messageOf } from '@sandlot/shared/base/errors'
import { create } from 'zustand'
import { call } from '../net/call.ts'
import { uploadFile } from '../net/files.ts'
import { ApiError } from '../net/http.ts'

const SIDE_BY_SIDE = 2

export type Upload = {
  readonly key: string
  /** The target path. */
  readonly path: string
  readonly file: File
} & (
  | { state: 'waiting'; replace: boolean }
  | { state: 'sending'; sent: number }
  | { state: 'there' }
  /** Something is there: a person decides. */
  | { state: 'conflict' }
  | { state: 'failed'; problem: string }
)

interface Uploads {
  items: readonly Upload[]
  /** Counts what has arrived, and folders that were made: the tree looks again. */
  arrived: number
}

/** A file, or (null) an empty folder, and where it goes. */
export interface NewEntry {
  path: string
  file: File | null
}

export const useUploads = create<Uploads>()(() => ({ items: [], arrived: 0 }))

const stops = new Map<string, AbortController>()

/** Sends these one after the other. */
export function addUploads(entries: readonly NewEntry[]): void {
  const files = entries.flatMap(({ path, file }) => (file === null ? [] : [{ path, file }]))
  for (const { path, file } of entries) if (file === null) void makeEmptyFolder(path)
  const added = files.map((one): Upload => ({
    ...one,
    key: crypto.randomUUID(),
    state: 'waiting',
    replace: false,
  }))
  useUploads.setState(({ items }) => ({ items: [...items.filter(isUnfinished), ...added] }))
  sendNext()
}

type Decision = 'replace' | 'both' | 'skip'

/** About what is there already: the first, or `all` that ask. */
export function decideUploads(decision: Decision, all: boolean): void {
  const asking = useUploads.getState().items.filter(({ state }) => state === 'conflict')
  for (const item of all ? asking : asking.slice(0, 1)) {
    if (decision === 'skip') drop(item.key)
    else {
      const path = decision === 'both' ? numbered(item.path) : item.path
      put({ key: item.key, path, file: item.file, state: 'waiting', replace: decision === 'replace' })
    }
  }
  sendNext()
}

export function retryUpload(key: string): void {
  const item = useUploads.getState().items.find((one) => one.key === key)
  if (item?.state !== 'failed') return
  put({ key, path: item.path, file: item.file, state: 'waiting', replace: false })
  sendNext()
}

/** Nothing stays of those that have not arrived. */
export function stopUploads(): void {
  for (const stop of stops.values()) stop.abort()
  useUploads.setState({ items: [] })
}

function sendNext(): void {
  const { items } = useUploads.getState()
  const next = items.find(({ state }) => state === 'waiting')
  if (next?.state !== 'waiting' || stops.size >= SIDE_BY_SIDE) return
  void sendOne(next, next.replace)
  sendNext()
}

async function sendOne({ key, path, file }: Upload, replace: boolean): Promise<void> {
  const stop = new AbortController()
  stops.set(key, stop)
  const about = { key, path, file }
  put({ ...about, state: 'sending', sent: 0 })
  try {
    const onProgress = (sent: number) => put({ ...about, state: 'sending', sent })
    await uploadFile(path, file, { replace, onProgress, signal: stop.signal })
    put({ ...about, state: 'there' })
    useUploads.setState(({ arrived }) => ({ arrived: arrived + 1 }))
  } catch (error) {
    const isTaken = error instanceof ApiError && error.code === 'conflict' && !replace
    put(isTaken ? { ...about, state: 'conflict' } : { ...about, state: 'failed', problem: messageOf(error) })
  } finally {
    stops.delete(key)
    sendNext()
  }
}

async function makeEmptyFolder(path: string): Promise<void> {
  try {
    await call('makeFolder', { body: { path } })
  } catch (error) {
    // One that is there already is what was wanted.
    if (!(error instanceof ApiError) || error.code !== 'conflict')
      console.warn(`${path}: ${messageOf(error)}`)
  }
  useUploads.setState(({ arrived }) => ({ arrived: arrived + 1 }))
}

/** A cancelled upload is not shown. */
function put(item: Upload): void {
  useUploads.setState(({ items }) => ({
    items: items.map((other) => (other.key === item.key ? item : other)),
  }))
}

function drop(key: string): void {
  useUploads.setState(({ items }) => ({ items: items.filter((item) => item.key !== key) }))
}

const isUnfinished = ({ state }: Upload): boolean => state !== 'there'

/** The folder of files attached to a message. */
export const ATTACHED = 'uploads'
/** Other names for one that is taken. */
const MOST_NAMES = 100

/** Under a name that is free there. As `uploadFile`; answers the path. */
export async function uploadAttached(
  file: File,
  options: { onProgress: (part: number) => void; signal: AbortSignal },
): Promise<string> {
  const { signal } = options
  const onProgress = (sent: number) => options.onProgress(file.size === 0 ? 1 : sent / file.size)
  let path = `${ATTACHED}/${plainName(file.name)}`
  for (let n = 1; ; n++) {
    try {
      await uploadFile(path, file, { replace: false, onProgress, signal })
      useUploads.setState(({ arrived }) => ({ arrived: arrived + 1 }))
      return path
    } catch (error) {
      if (n === MOST_NAMES || !(error instanceof ApiError) || error.code !== 'conflict') throw error
      path = numbered(path)
    }
  }
}

/** Removes an unsent attachment. Does not reject. */
export async function removeAttached(path: string): Promise<void> {
  try {
    await call('removeFile', { query: { path, forever: true } })
    useUploads.setState(({ arrived }) => ({ arrived: arrived + 1 }))
  } catch (error) {
    console.warn(`${path} stays in the workspace: ${messageOf(error)}`)
  }
}

/** Room for a number behind it. */
const MOST_NAME_BYTES = 240

/** One that a line of a message holds, and every file system. */
function plainName(name: string): string {
  const plain = name
    .toWellFormed()
    .replaceAll(/[\\/"\p{Cc}\p{Cf}\p{Zl}\p{Zp}\uFFFD]/gu, '_')
    .trim()
  const [, stem = plain, ending = ''] = /^(.+?)(\.[^.]{1,16})?$/.exec(plain) ?? []
  let short = stem
  while (new TextEncoder().encode(short + ending).length > MOST_NAME_BYTES) short = short.slice(0, -1)
  // Half a character may be left at the end.
  short = short.toWellFormed()
  return short + ending === '' ? 'file' : short + ending
}

/** `a.txt` → `a (2).txt` → `a (3).txt` */
function numbered(path: string): string {
  const [, stem = path, ending = ''] = /^(.*[^/])(\.[^./]+)$/.exec(path) ?? []
  const [, base = stem, n = '1'] = /^(.*) \((\d+)\)$/.exec(stem) ?? []
  return `${base} (${Number(n) + 1})${ending}`
}
