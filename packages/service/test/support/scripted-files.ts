/** Files of people for the scripted agent, in memory; pieces are small, so that there are several. */
import { RequestError } from '@agentclientprotocol/sdk'
import type { FilesAsk } from '@sandlot/shared/workspace/files'

const PIECE_BYTES = 128 * 1024
const NOTHING = Buffer.alloc(0)

export class ScriptedFiles {
  readonly #of = new Map<string, Map<string, Buffer>>()
  readonly #uploads = new Map<string, Buffer>()
  /** Uploads of which more is to come. */
  get pending(): number {
    return this.#uploads.size
  }

  /** Uploads that were given up. */
  readonly aborted: string[] = []
  /** Every look finds the file changed. */
  changing = false
  #changes = 0
  /** Awaited before each answer. */
  held: Promise<void> = Promise.resolve()

  async answer(userId: string, ask: FilesAsk): Promise<object> {
    await this.held
    const own = this.#of.get(userId) ?? new Map<string, Buffer>()
    this.#of.set(userId, own)
    if (ask.do === 'list') {
      const entries = [...own].flatMap(([path, bytes]) => {
        const [, name] = new RegExp(`^${ask.path === '' ? '' : `${ask.path}/`}([^/]+)$`).exec(path) ?? []
        return name === undefined ? [] : [{ name, kind: 'file', size: bytes.length, modifiedAt: 1 }]
      })
      return { entries, left: 0 }
    }
    if (ask.do === 'abort') {
      this.aborted.push(ask.upload)
      return {}
    }
    if (ask.do === 'trash') return { entries: [] }
    if (ask.do === 'search') {
      const found = [...own].filter(([path]) => path.includes(ask.query))
      const entries = found.map(([path, { length: size }]) => ({ path, kind: 'file', size, modifiedAt: 1 }))
      return { entries, more: false }
    }
    if (ask.do !== 'read' && ask.do !== 'write') throw refusal('not_implemented', ask.do)
    const known = own.get(ask.path)
    if (ask.do === 'write') {
      if (known !== undefined && !ask.replace) throw refusal('conflict', 'It is there already.')
      if (ask.version !== undefined && ask.version.modifiedAt !== 1)
        return { conflict: { size: 1, modifiedAt: 1 } }
      const upload = `${ask.upload}`
      const bytes = Buffer.concat([this.#uploads.get(upload) ?? NOTHING, Buffer.from(ask.data, 'base64')])
      this.#uploads.set(upload, bytes)
      if (ask.more === true) return { written: bytes.length }
      this.#uploads.delete(upload)
      own.set(ask.path, bytes)
      return { size: bytes.length, modifiedAt: 1 }
    }
    if (known === undefined) throw refusal('not_found', 'It does not exist.')
    if (this.changing) this.#changes++
    const data = known
      .subarray(ask.offset, ask.offset + Math.min(ask.length ?? PIECE_BYTES, PIECE_BYTES))
      .toString('base64')
    return { size: known.length, modifiedAt: 1 + this.#changes, data }
  }
}

function refusal(code: string, message: string): RequestError {
  return new RequestError(-32_600, message, { code })
}
