/** Files of people for the scripted agent, in memory; pieces are small, so that there are several. */
import { RequestError } from '@agentclientprotocol/sdk'
import type { FilesAsk } from '@sandlot/shared/person/files'

const PIECE_BYTES = 128 * 1024

export class ScriptedFiles {
  readonly #of = new Map<string, Map<string, Buffer>>()
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
    const known = own.get(ask.path)
    if (ask.do === 'write') {
      if (known !== undefined && !ask.replace) throw refusal('conflict', 'It is there already.')
      own.set(ask.path, Buffer.from(ask.data, 'base64'))
      return {}
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
