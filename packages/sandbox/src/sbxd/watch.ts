/** Watched directories: one set at a time, because sbxd holds one. */
import { SandboxError } from '../errors.ts'
import { fileError } from './errno.ts'
import type { Link } from './link.ts'
import { ByteReader, ByteWriter } from './protocol/bytes.ts'
import { FLAG, FrameType } from './protocol/frames.ts'

/** Maximum that sbxd watches at once. */
const MOST_WATCHED = 128

export class DirectoryWatches {
  readonly #link: Link
  #set = 0
  #current: { set: number; paths: readonly string[]; changed: Set<string>; wake: () => void } | undefined

  constructor(link: Link) {
    this.#link = link
    link.onFileChanged = (flags, payload) => this.#changed(flags, payload)
    void link.closed.then(() => this.#current?.wake())
  }

  /** See `SandboxFiles.watch`; paths are relative to the workspace. */
  async *watch(all: readonly string[], signal: AbortSignal): AsyncGenerator<readonly string[], void> {
    const paths = all.slice(0, MOST_WATCHED)
    const set = ++this.#set
    let wake = Promise.withResolvers<void>()
    const current = { set, paths, changed: new Set<string>(), wake: () => wake.resolve() }
    this.#current?.wake()
    this.#current = current
    const stop = (): void => wake.resolve()
    signal.addEventListener('abort', stop)
    try {
      await this.#ask(set, paths)
      // Covers changes between the caller's last read and the watch.
      yield paths
      while (!signal.aborted && this.#current === current && !this.#link.ended) {
        if (current.changed.size === 0) await wake.promise
        wake = Promise.withResolvers()
        const changed = [...current.changed]
        current.changed.clear()
        if (changed.length > 0) yield changed
      }
    } finally {
      signal.removeEventListener('abort', stop)
      if (this.#current === current) {
        this.#current = undefined
        if (!this.#link.ended) await this.#ask(++this.#set, []).catch(() => undefined)
      }
    }
  }

  async #ask(set: number, paths: readonly string[]): Promise<void> {
    const request = new ByteWriter().u32(set)
    for (const path of paths) request.text(path)
    const { type, payload } = await this.#link.request(FrameType.FILE_WATCH, 0, request.done())
    if (type !== FrameType.FILE_RESULT)
      throw new SandboxError('protocol', 'sbxd answered a watch with something else')
    const errno = new ByteReader(payload).u32()
    if (errno !== 0) throw fileError(errno, '')
  }

  #changed(flags: number, payload: Buffer): void {
    const reader = new ByteReader(payload)
    const current = this.#current
    if (reader.u32() !== current?.set) return
    while (reader.left >= 2) {
      const path = current.paths[reader.u16()]
      if (path !== undefined) current.changed.add(path)
    }
    if ((flags & FLAG.ALL) !== 0) for (const path of current.paths) current.changed.add(path)
    if (current.changed.size > 0) current.wake()
  }
}
