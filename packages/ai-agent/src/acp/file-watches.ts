/**
 * Which directories of whose workspace are being shown, and to whom: all of a person's pages share
 * one set of watches in their sandbox. Nothing is stored, and no sandbox is started for it.
 */
import { messageOf } from '@sandlot/shared/base/errors'
import type { Sandbox } from '@sandlot/sandbox/sandbox'
import type { Log } from '../log.ts'

interface Reader {
  paths: readonly string[]
  tell: (paths: readonly string[]) => void
}

interface Watched {
  readers: Map<object, Reader>
  /** The watched paths, in this boot of the sandbox. */
  running: { boot: string; paths: ReadonlySet<string>; stop: AbortController } | undefined
}

interface FileWatchesParts {
  /** The user's sandbox if it is awake. */
  connected: (userId: string) => Promise<Sandbox | undefined>
  log: Log
}

export class FileWatches {
  readonly #parts: FileWatchesParts
  readonly #users = new Map<string, Watched>()

  constructor(parts: FileWatchesParts) {
    this.#parts = parts
  }

  /**
   * Replaces the paths shown to this reader; none: nothing any more. `tell` gets those of its paths
   * in which something may have changed.
   */
  async set(reader: object, userId: string, { paths, tell }: Reader): Promise<void> {
    const user = this.#users.get(userId) ?? { readers: new Map<object, Reader>(), running: undefined }
    this.#users.set(userId, user)
    if (paths.length === 0) user.readers.delete(reader)
    else user.readers.set(reader, { paths, tell })
    if (user.readers.size === 0) {
      user.running?.stop.abort()
      this.#users.delete(userId)
      return
    }
    const sandbox = await this.#parts.connected(userId)
    if (sandbox !== undefined) this.#renew(userId, sandbox, true)
  }

  /** The user's sandbox is there: it may be another than the one that was watched. */
  awake(userId: string, sandbox: Sandbox): void {
    this.#renew(userId, sandbox, false)
  }

  /** Another agent has this user. */
  forget(userId: string): void {
    this.#users.get(userId)?.running?.stop.abort()
    this.#users.delete(userId)
  }

  #renew(userId: string, sandbox: Sandbox, changed: boolean): void {
    const user = this.#users.get(userId)
    if (user === undefined) return
    const before = user.running?.boot === sandbox.bootId ? user.running : undefined
    if (before !== undefined && !changed) return
    const paths = new Set([...user.readers.values()].flatMap((reader) => reader.paths))
    const stop = new AbortController()
    user.running?.stop.abort()
    user.running = { boot: sandbox.bootId, paths, stop }
    void this.#follow(user, sandbox, before?.paths ?? new Set())
  }

  /** `known`: what was watched until now, so that nothing in it was missed. Never rejects. */
  async #follow(user: Watched, sandbox: Sandbox, known: ReadonlySet<string>): Promise<void> {
    const { running } = user
    if (running === undefined) return
    try {
      let missed: ReadonlySet<string> | undefined = known
      for await (const changed of sandbox.files.watch([...running.paths], running.stop.signal)) {
        const told = changed.filter((path) => missed?.has(path) !== true)
        missed = undefined
        for (const { paths, tell } of user.readers.values()) {
          const theirs = told.filter((path) => paths.includes(path))
          if (theirs.length > 0) tell(theirs)
        }
      }
    } catch (error) {
      if (!running.stop.signal.aborted)
        this.#parts.log.warn({ error: messageOf(error) }, 'a workspace is not watched')
    } finally {
      if (user.running === running) user.running = undefined
    }
  }
}
