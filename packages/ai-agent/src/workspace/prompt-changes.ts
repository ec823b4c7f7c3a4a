/**
 * Changes of the workspace while a prompt ran, by any program: the sandbox is asked before the
 * first call that may change something, and at the prompt's end.
 */
import { SandboxError } from '@sandlot/sandbox/errors'
import type { FileChange as SeenChange, WorkspaceSnapshot } from '@sandlot/sandbox/files'
import type { Sandbox } from '@sandlot/sandbox/sandbox'
import { orAborted } from '@sandlot/shared/async/or-aborted'
import type { FileChange, FilesChanged, PromptDiffs } from '@sandlot/shared/chat/file-changes'
import { messageOf } from '@sandlot/shared/base/errors'
import { type SessionEvent, isOutcome, metaOf } from '@sandlot/shared/chat/events'
import { lineDiff } from '@sandlot/shared/transcript/line-diff'
import type { Log } from '../log.ts'
import { diffContent } from '../tools/file-diff.ts'
import { contentHash } from '../tools/known-files.ts'
import { decodeExactly } from '../tools/workspace-files.ts'
import { WORKSPACE } from '../tools/workspace-path.ts'
import { type GitBefore, gitBefore } from './git-before.ts'

/** Milliseconds that the first call waits for the sandbox to look, and that the end waits. */
const READ_MS = 6_000
const SETTLE_MS = 6_000
/** Files that are named; the others are counted. */
const MOST_FILES = 100
/** Files whose text is compared, and bytes of each. */
const MOST_COMPARED = 60
const MOST_TEXT_BYTES = 256 * 1024
/** Characters of all diffs of a prompt that are kept. */
const MOST_DIFF_CHARS = 1024 * 1024

interface Before {
  sandbox: Sandbox
  snapshot: WorkspaceSnapshot
  git: GitBefore | undefined
}

export class PromptChanges {
  readonly #promptId: string
  readonly #log: Log
  #before: Promise<Before | 'too_many_files' | undefined> | undefined

  constructor(promptId: string, log: Log) {
    this.#promptId = promptId
    this.#log = log
  }

  /** Before a call that may change something. Resolves when the call may go on; never rejects. */
  async watch(sandbox: Sandbox): Promise<void> {
    this.#before ??= this.#readBefore(sandbox)
    await this.#before
  }

  /**
   * The changed files, and the known diffs; undefined when there are none, or none can be known.
   * `log`: of the session. Never rejects.
   */
  async settle(
    log: readonly SessionEvent[],
  ): Promise<{ changed: FilesChanged; diffs: PromptDiffs['diffs'] } | undefined> {
    const before = await this.#before
    if (before === undefined) return undefined
    if (before === 'too_many_files') return tooManyFiles()
    try {
      const patience = AbortSignal.timeout(SETTLE_MS)
      const { files, more } = await orAborted(before.snapshot.changes(), patience)
      if (files.length === 0) return undefined
      const named = files.slice(0, MOST_FILES)
      const texts = await this.#texts(before, named.slice(0, MOST_COMPARED), log, patience)
      const shown = withLines(named, texts)
      return { changed: { files: shown.files, more: more + files.length - named.length }, diffs: shown.diffs }
    } catch (error) {
      if (isTooLarge(error)) return tooManyFiles()
      this.#warn(error)
      return undefined
    } finally {
      void before.git?.forget()
    }
  }

  async #readBefore(sandbox: Sandbox): Promise<Before | 'too_many_files' | undefined> {
    try {
      const patience = AbortSignal.timeout(READ_MS)
      const snapshot = await orAborted(sandbox.files.snapshot(), patience)
      const { repositories } = snapshot
      const git = repositories.length === 0 ? undefined : gitBefore(sandbox, repositories)
      return { sandbox, snapshot, git: git && (await orAborted(git, patience)) }
    } catch (error) {
      if (isTooLarge(error)) return 'too_many_files'
      this.#warn(error)
      return undefined
    }
  }

  /** Before and after, of the files of which both are known. */
  async #texts(
    { sandbox, git }: Before,
    files: readonly SeenChange[],
    log: readonly SessionEvent[],
    patience: AbortSignal,
  ): Promise<Map<string, Texts>> {
    const texts = new Map<string, Texts>()
    try {
      const small = files.filter(({ size }) => size <= MOST_TEXT_BYTES)
      const edited = editedBefore(log, this.#promptId)
      const old = small.filter(({ kind }) => kind !== 'created').map(({ path }) => path)
      const tracked = (await orAborted(git?.read(old) ?? Promise.resolve(undefined), patience)) ?? new Map()
      for (const { kind, path } of small) {
        const known = kind === 'created' ? null : (textOf(tracked.get(path)) ?? edited.get(path))
        if (known === undefined) continue
        const after = kind === 'removed' ? '' : await orAborted(readText(sandbox, path), patience)
        if (after !== undefined) texts.set(path, { before: known, after })
      }
    } catch (error) {
      this.#warn(error)
    }
    return texts
  }

  #warn(error: unknown): void {
    const fields = { promptId: this.#promptId, error: messageOf(error) }
    this.#log.info(fields, 'changes in the workspace could not be determined')
  }
}

interface Texts {
  /** Null: the file is new. */
  before: string | null
  after: string
}

function tooManyFiles(): { changed: FilesChanged; diffs: [] } {
  return { changed: { files: [], more: 0, problem: 'too_many_files' }, diffs: [] }
}

function isTooLarge(error: unknown): boolean {
  return error instanceof SandboxError && error.code === 'too_large'
}

function withLines(
  named: readonly SeenChange[],
  texts: ReadonlyMap<string, Texts>,
): { files: FileChange[]; diffs: PromptDiffs['diffs'] } {
  const diffs: PromptDiffs['diffs'] = []
  let room = MOST_DIFF_CHARS
  const files = named.map(({ path, kind, size }): FileChange => {
    const both = texts.get(path)
    if (both === undefined) return { path, kind, size }
    const { added, removed } = lineDiff(both.before, both.after)
    const counted = { path, kind, size, lines: { added, removed } }
    const [shown] = diffContent(path, both.before ?? undefined, both.after)
    if (shown?.type !== 'diff' || added + removed === 0) return counted
    const { oldText = null, newText } = shown
    const chars = (oldText ?? '').length + newText.length
    if (chars > room) return counted
    room -= chars
    diffs.push({ path, oldText, newText })
    return { ...counted, diff: true }
  })
  return { files, diffs }
}

/** Undefined for what is gone again, too large, or no text. */
async function readText({ files }: Sandbox, path: string): Promise<string | undefined> {
  try {
    const bytes = await files.withoutLinks.read(path, { length: MOST_TEXT_BYTES + 1 })
    return bytes.length > MOST_TEXT_BYTES ? undefined : textOf(bytes)
  } catch (error) {
    if (error instanceof SandboxError && error.code !== 'sandbox_lost') return undefined
    throw error
  }
}

function textOf(bytes: Uint8Array | undefined): string | undefined {
  return bytes === undefined ? undefined : decodeExactly(bytes)?.text
}

/**
 * Content of files before this prompt's first edit of each by an edit tool, where the outcome shows
 * all of it.
 */
function editedBefore(log: readonly SessionEvent[], promptId: string): Map<string, string | null> {
  const before = new Map<string, string | null>()
  for (const event of log) {
    if (!isOutcome(event) || metaOf(event).promptId !== promptId) continue
    for (const content of event.content ?? []) {
      if (content.type !== 'diff' || !content.path.startsWith(`${WORKSPACE}/`)) continue
      const path = content.path.slice(WORKSPACE.length + 1)
      const data = event.rawOutput?.data as { hash?: unknown } | null | undefined
      const isWhole = data?.hash === contentHash(Buffer.from(content.newText))
      if (isWhole && !before.has(path)) before.set(path, content.oldText ?? null)
    }
  }
  return before
}
