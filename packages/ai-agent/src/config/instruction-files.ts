/**
 * Instructions in the workspace: AGENTS.md, or CLAUDE.md where it is alone in its folder, from the
 * root down to the chat's folder. Their last texts are stored, for a sandbox that does not run.
 */
import { SandboxError, type SandboxErrorCode } from '@sandlot/sandbox/errors'
import type { SandboxFiles } from '@sandlot/sandbox/files'
import type { Sandbox } from '@sandlot/sandbox/sandbox'
import { orTimeout } from '@sandlot/shared/async/or-timeout'
import { messageOf } from '@sandlot/shared/base/errors'
import { parseJson } from '@sandlot/shared/base/json'
import {
  type InstructionFile,
  UNREADABLE_WORDS,
  type Unreadable,
} from '@sandlot/shared/chat/instruction-files'
import type { Rule } from '@sandlot/shared/chat/rules'
import type { InstructionRows } from '@sandlot/storage/people/instructions'
import { z } from 'zod'
import { fileProblem } from '../approval/engine.ts'
import { INSTRUCTION_FILES } from '../approval/files.ts'
import type { Log } from '../log.ts'
import { binaryKind } from '../tools/workspace-files.ts'

/** Bytes of all texts together, and of each stored one. */
const MAX_BYTES = 32 * 1024
/** Milliseconds that a prompt waits for the sandbox: it must not make the first answer slow. */
const PATIENCE_MS = 300
/** Stored texts of one person, each of another folder. */
const MAX_STORED = 32
/** Milliseconds after which an unchanged text is stored again with the time of its reading. */
const RENEW_MS = 3_600_000

const storedText = z.object({
  path: z.string(),
  text: z.string(),
  /** Size of the file, whose text may have been cut. */
  bytes: z.number(),
  readAt: z.number(),
})
const storedTexts = z.array(storedText)
type StoredText = z.infer<typeof storedText>

type Reading = Omit<StoredText, 'readAt'> | { path: string; unreadable: Unreadable } | undefined

/** A file and its text; what is absent is not known. */
interface Found extends Omit<InstructionFile, 'given'> {
  text?: string
}

export interface WorkspaceSources {
  /** The user's sandbox if it runs or is paused; undefined rather than starting one. */
  awake: (userId: string) => Promise<Sandbox | undefined>
  rows: Pick<InstructionRows, 'files' | 'changeFiles'>
  rulesOf: (userId: string) => Promise<readonly Rule[]>
  now: () => number
  log: Pick<Log, 'warn'>
}

/**
 * The files for a chat in `folder` (relative to the workspace, '' for itself), root first, as
 * titled texts and as a description for people. A file that cannot be read now has its last text,
 * as all have when the sandbox does not run or answer. Logs a failure of the stored texts.
 */
export async function readInstructionFiles(
  userId: string,
  folder: Promise<string>,
  sources: WorkspaceSources,
): Promise<{ sections: readonly (readonly [string, string])[]; files: InstructionFile[] }> {
  const { rows, now, log } = sources
  const warn = (error: unknown): void =>
    log.warn({ userId, error: messageOf(error) }, 'the stored texts of instruction files cannot be used')
  const [stored, folders, readings] = await Promise.all([
    rows.files(userId).then(parseStored, (error: unknown) => {
      warn(error)
      return parseStored('')
    }),
    folder.then(foldersDownTo),
    orTimeout(readAll(userId, folder, sources), PATIENCE_MS, undefined),
  ])
  const at = now()
  if (readings !== undefined && renewStored(stored, readings, at))
    await rows.changeFiles(userId, at, (files) => renewed(files, readings, at)).catch(warn)
  const found = folders.flatMap((place): Found[] => {
    const before = stored.get(place)
    if (readings === undefined) return before === undefined ? [] : [before]
    const reading = readings.get(place)
    if (reading === undefined) return []
    if ('text' in reading) return [reading]
    return [before?.path === reading.path ? { ...before, ...reading } : reading]
  })
  return describe(found)
}

/** By folder. What does not parse is empty: the next reading stores it again. */
function parseStored(json: string): Map<string, StoredText> {
  const texts = storedTexts.safeParse(parseJson(json)).data ?? []
  return new Map(texts.map((one) => [folderOf(one.path), one]))
}

function folderOf(path: string): string {
  return path.slice(0, Math.max(0, path.lastIndexOf('/')))
}

/** `a/b` → `''`, `a`, `a/b`. */
function foldersDownTo(folder: string): string[] {
  const names = folder === '' ? [] : folder.split('/')
  return ['', ...names.map((_, index) => names.slice(0, index + 1).join('/'))]
}

/** The stored texts as JSON with these readings, also where another prompt has stored others. */
function renewed(json: string, readings: ReadonlyMap<string, Reading>, now: number): string {
  const stored = parseStored(json)
  renewStored(stored, readings, now)
  return JSON.stringify([...stored.values()].slice(-MAX_STORED))
}

/** Updates `stored`, the longest unread text first. True when that must be stored. */
function renewStored(
  stored: Map<string, StoredText>,
  readings: ReadonlyMap<string, Reading>,
  now: number,
): boolean {
  let changed = false
  for (const [place, reading] of readings) {
    const before = stored.get(place)
    if (reading === undefined) changed = stored.delete(place) || changed
    if (reading === undefined || !('text' in reading)) continue
    const { path, text, bytes } = reading
    const same = before?.path === path && before.text === text && before.bytes === bytes
    if (same && now - before.readAt < RENEW_MS) continue
    stored.delete(place)
    stored.set(place, { ...reading, readAt: now })
    changed = true
  }
  return changed
}

// ── Reading

/** By folder; undefined when the sandbox does not run or answer. */
async function readAll(
  userId: string,
  folder: Promise<string>,
  { awake, rulesOf }: WorkspaceSources,
): Promise<ReadonlyMap<string, Reading> | undefined> {
  try {
    const [sandbox, folders] = await Promise.all([awake(userId), folder.then(foldersDownTo)])
    if (sandbox === undefined) return undefined
    const rules = (): Promise<readonly Rule[]> => rulesOf(userId)
    // The requests of one tick are one exchange with the sandbox.
    const readings = folders.map(async (place): Promise<[string, Reading]> => {
      const names = INSTRUCTION_FILES.map((name) => (place === '' ? name : `${place}/${name}`))
      const both = await Promise.all(names.map((path) => readFile(sandbox.files, path, rules)))
      return [place, both.find((one) => one !== undefined)]
    })
    return new Map(await Promise.all(readings))
  } catch (error) {
    if (error instanceof SandboxError) return undefined
    throw error
  }
}

const WHY: Partial<Record<SandboxErrorCode, Unreadable>> = {
  path_outside: 'link_outside',
  not_regular: 'not_file',
  permission: 'failed',
  path_changed: 'failed',
  limit_reached: 'failed',
  invalid_arguments: 'failed',
}

/** Undefined: there is none. Rejects with a `SandboxError` that concerns the whole sandbox. */
async function readFile(
  files: SandboxFiles,
  path: string,
  rules: () => Promise<readonly Rule[]>,
): Promise<Reading> {
  try {
    const { place, bytes } = await readThroughLinks(files, path, rules)
    const text = bytes === undefined ? undefined : decodeText(bytes)
    if (bytes === undefined || text === undefined)
      return { path, unreadable: bytes === undefined ? 'denied' : 'not_text' }
    const size = bytes.length > MAX_BYTES ? (await files.withoutLinks.stat(place)).size : bytes.length
    return { path, text, bytes: size }
  } catch (error) {
    if (!(error instanceof SandboxError)) throw error
    if (error.code === 'not_found') return undefined
    const unreadable = WHY[error.code]
    if (unreadable === undefined) throw error
    return { path, unreadable }
  }
}

/**
 * The beginning of the file, and its path without links; without bytes where a rule denies it. A
 * link is judged by its target, and only that target is opened then.
 */
async function readThroughLinks(
  files: SandboxFiles,
  path: string,
  rules: () => Promise<readonly Rule[]>,
): Promise<{ place: string; bytes?: Uint8Array }> {
  const read = async (place: string) => ({
    place,
    bytes: await files.withoutLinks.read(place, { length: MAX_BYTES + 1 }),
  })
  try {
    return await read(path)
  } catch (error) {
    if (!(error instanceof SandboxError) || error.code !== 'path_changed') throw error
  }
  const place = await files.resolve(path)
  const asks = [{ kind: 'file', access: 'read', path, leadsTo: { path: place, linked: true } }] as const
  const request = { tool: 'files', kind: 'read', readOnly: true, asks } as const
  return fileProblem(request, await rules()) === undefined ? read(place) : { place }
}

/** Undefined for what is not UTF-8 text. Without a BOM and a character that was cut. */
function decodeText(bytes: Uint8Array): string | undefined {
  if (binaryKind(bytes) !== undefined) return undefined
  try {
    const text = new TextDecoder('utf-8', { fatal: true }).decode(bytes, { stream: bytes.length > MAX_BYTES })
    return firstBytes(text, MAX_BYTES)
  } catch {
    return undefined
  }
}

/** The first `most` bytes of the text or fewer, without a part of a character. */
function firstBytes(text: string, most: number): string {
  const bytes = Buffer.from(text)
  return bytes.length <= most ? text : new TextDecoder().decode(bytes.subarray(0, most), { stream: true })
}

// ── Texts for the model

function describe(found: readonly Found[]): {
  sections: readonly (readonly [string, string])[]
  files: InstructionFile[]
} {
  const given = shareRoom(found)
  const files = found.map(({ text = '', ...file }, index): InstructionFile => {
    const length = Buffer.byteLength(given[index] ?? '')
    const isCut = length < Buffer.byteLength(text) || (file.bytes ?? 0) > MAX_BYTES
    return isCut ? { ...file, given: length } : file
  })
  return { sections: files.map((file, index) => [titleOf(file), bodyOf(file, given[index] ?? '')]), files }
}

/** Cuts the texts to the room for all, from the first one on: the last one is the nearest. */
function shareRoom(found: readonly Found[]): string[] {
  let room = MAX_BYTES
  return found
    .toReversed()
    .map(({ text = '', bytes = 0 }) => {
      const part = firstBytes(text, room)
      room = part === text && bytes <= MAX_BYTES ? room - Buffer.byteLength(part) : 0
      return part
    })
    .toReversed()
}

function titleOf({ path, readAt, unreadable }: InstructionFile): string {
  const nearer = path.includes('/') ? ', which overrides those of the folders above it' : ''
  const now = unreadable === undefined ? '' : `; it cannot be read now: ${UNREADABLE_WORDS[unreadable]}`
  const old = readAt === undefined ? '' : ` (as read at ${new Date(readAt).toISOString()}${now})`
  return `From ${path} in the workspace${nearer}${old}`
}

function bodyOf({ path, bytes = 0, given, readAt, unreadable }: InstructionFile, text: string): string {
  if (readAt === undefined && unreadable !== undefined)
    return `[It cannot be read: ${UNREADABLE_WORDS[unreadable]}.]`
  if (given === undefined) return text
  return `${text}\n[Cut: ${given} of ${bytes} bytes. Read ${path} for the rest.]`
}
