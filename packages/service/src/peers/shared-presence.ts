/** Users who look at a page, at any of the services: they get no notifications. */
import { SerialQueue } from '@sandlot/shared/async/serial-queue'
import { messageOf } from '@sandlot/shared/base/errors'
import type { ServicesStore } from '@sandlot/storage/accounts/services'
import type { Logger } from '../log.ts'
import type { Sockets } from '../socket/sockets.ts'

interface SharedPresenceParts {
  /** The id of this service. */
  id: string
  sockets: Pick<Sockets, 'looking' | 'isLooking' | 'lastLooked'>
  store: ServicesStore
  log: Logger
}

/** A third of what others believe it for. */
const EVERY_MS = 5_000

export class SharedPresence {
  readonly #parts: SharedPresenceParts
  readonly #timer: NodeJS.Timeout
  #were: readonly string[] = []
  readonly #writes = new SerialQueue()

  constructor(parts: SharedPresenceParts) {
    this.#parts = parts
    this.#timer = setInterval(() => void this.#writes.run(() => this.#write()), EVERY_MS).unref()
  }

  async isLooking(userId: string): Promise<boolean> {
    const { sockets, store } = this.#parts
    return sockets.isLooking(userId) || (await store.presenceOf(userId)).isLooking
  }

  async lastLooked(userId: string): Promise<number> {
    const { sockets, store } = this.#parts
    return Math.max(sockets.lastLooked(userId), (await store.presenceOf(userId)).lastLooked)
  }

  /** Its last row holds for some seconds, in which pages reconnect at another service. */
  async close(): Promise<void> {
    clearInterval(this.#timer)
    await this.#writes.idle()
  }

  async #write(): Promise<void> {
    const { id, sockets, store, log } = this.#parts
    const looking = sockets.looking()
    try {
      await store.putPresence(
        id,
        looking,
        this.#were.filter((userId) => !looking.includes(userId)),
      )
      this.#were = looking
    } catch (error) {
      log.debug({ error: messageOf(error) }, 'presence could not be stored')
    }
  }
}
