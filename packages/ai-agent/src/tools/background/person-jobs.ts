/** Background commands of a person's sandbox, whichever of their chats started them. */
import type { Sandbox } from '@sandlot/sandbox/sandbox'
import { orAborted } from '@sandlot/shared/async/or-aborted'
import type { BackgroundJob } from '@sandlot/shared/workspace/sandbox'
import { SandlotError } from '@sandlot/shared/base/errors'
import { type SessionEvent, metaOf } from '@sandlot/shared/chat/events'
import type { LogReads } from '@sandlot/storage/sessions/log'
import type { SessionReads } from '@sandlot/storage/sessions/sessions'
import { jobsOf, logPath } from './jobs.ts'

/** Bytes of an output that are read. */
const TAIL_BYTES = 16 * 1024
/** Chats that are looked through for the start of a command: a job lives for a day at most. */
const MOST_SESSIONS = 50
const LOOK_BACK_MS = 25 * 60 * 60 * 1000
const GRACE_MS = 2_000
const PATIENCE_MS = 15_000

interface PersonJobsParts {
  store: { sessions: Pick<SessionReads, 'list'>; log: LogReads }
  /** The sandbox of this user while there is a stream to it. */
  connected: (userId: string) => Promise<Sandbox | undefined>
  /** Epoch milliseconds. */
  now: () => number
}

export class PersonJobs {
  readonly #parts: PersonJobsParts
  /** By user, then by the command's id, of those that were seen running last. */
  readonly #known = new Map<string, Map<string, BackgroundJob>>()

  constructor(parts: PersonJobsParts) {
    this.#parts = parts
  }

  /** Oldest first. Nothing is started for the question. */
  async list(userId: string): Promise<BackgroundJob[]> {
    const ids = await this.#running(userId)
    const before = this.#known.get(userId) ?? new Map<string, BackgroundJob>()
    const known = new Map([...before].filter(([id]) => ids.has(id)))
    const missing = [...ids].filter((id) => !known.has(id))
    if (missing.length > 0)
      for (const job of await this.#find(userId, new Set(missing))) known.set(job.id, job)
    if (known.size > 0) this.#known.set(userId, known)
    else this.#known.delete(userId)
    return [...known.values()].toSorted((a, b) => a.startedAt - b.startedAt)
  }

  /** The last lines that it has printed. Throws `not_found`. */
  async output(userId: string, id: string): Promise<string> {
    const sandbox = await this.#sandboxOf(userId, id)
    const path = logPath(id)
    const { size } = await sandbox.files.stat(path)
    const offset = Math.max(0, size - TAIL_BYTES)
    const text = Buffer.from(await sandbox.files.read(path, { offset, length: TAIL_BYTES })).toString('utf8')
    // The first line is not whole.
    return offset === 0 ? text : text.slice(text.indexOf('\n') + 1)
  }

  /**
   * Ends it with everything that it started. How it ended stays known to the sandbox, so that its
   * chat says so at its next turn. Throws `not_found`.
   */
  async end(userId: string, id: string): Promise<void> {
    const sandbox = await this.#sandboxOf(userId, id)
    const command = await sandbox.attach(id)
    if (command === undefined) return
    // Awaited below; a sandbox that ends in between must not be an unhandled rejection.
    void Promise.allSettled([command.exit])
    await command.cancel(GRACE_MS)
    await orAborted(command.exit, AbortSignal.timeout(PATIENCE_MS))
  }

  async #sandboxOf(userId: string, id: string): Promise<Sandbox> {
    const sandbox = await this.#parts.connected(userId)
    if (sandbox !== undefined && (await this.#running(userId)).has(id)) return sandbox
    throw new SandlotError('not_found', 'This command has ended, or there never was one of this id.')
  }

  async #running(userId: string): Promise<ReadonlySet<string>> {
    const commands = (await (await this.#parts.connected(userId))?.commands()) ?? []
    return new Set(
      commands.flatMap(({ id, background, state }) => (background && state === 'running' ? [id] : [])),
    )
  }

  async #find(userId: string, ids: Set<string>): Promise<BackgroundJob[]> {
    const { store, now } = this.#parts
    const found: BackgroundJob[] = []
    for (const { id, title, updatedAt } of await store.sessions.list(userId, { limit: MOST_SESSIONS })) {
      if (ids.size === 0 || updatedAt < now() - LOOK_BACK_MS) break
      const events = await store.log.read(id)
      for (const { command, callId, line, elsewhere } of jobsOf(events)) {
        if (elsewhere || !ids.delete(command)) continue
        found.push({ id: command, line, session: { id, title }, ...startOf(events, callId) })
      }
    }
    return found
  }
}

/** When the call was made, and who had asked for it. */
function startOf(events: readonly SessionEvent[], callId: string): Pick<BackgroundJob, 'startedAt' | 'by'> {
  const call = events.find((event) => event.sessionUpdate === 'tool_call' && event.toolCallId === callId)
  if (call === undefined) return { startedAt: 0 }
  const { at, promptId } = metaOf(call)
  const message = events.find(
    (event) => event.sessionUpdate === 'user_message_chunk' && metaOf(event).promptId === promptId,
  )
  return { startedAt: at, by: message && metaOf(message).author }
}
