/** A push service on this machine, and browsers that can read what it gets. */
import { createDecipheriv, createECDH, hkdfSync, randomBytes } from 'node:crypto'
import { type IncomingHttpHeaders, createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { PushSubscriptionBody } from '@sandlot/shared/chat/notifications'

interface Pushed {
  path: string
  headers: IncomingHttpHeaders
  body: Buffer
}

export class PushService {
  readonly pushed: Pushed[] = []
  /** By path; 201 where there is none. 0: never. */
  readonly status = new Map<string, number>()
  readonly #server = createServer((request, response) => {
    const pieces: Buffer[] = []
    request.on('data', (piece: Buffer) => pieces.push(piece))
    request.on('end', () => {
      const { url: path = '', headers } = request
      this.pushed.push({ path, headers, body: Buffer.concat(pieces) })
      const status = this.status.get(path) ?? 201
      if (status === 0) return
      response.writeHead(status, status === 302 ? { location: 'http://127.0.0.1:1/' } : {})
      response.end()
    })
  })
  url = ''

  static async start(): Promise<PushService> {
    const service = new PushService()
    await new Promise<void>((resolve) => {
      service.#server.listen(0, '127.0.0.1', () => resolve())
    })
    service.url = `http://127.0.0.1:${(service.#server.address() as AddressInfo).port}`
    return service
  }

  to(browser: PushBrowser): unknown[] {
    return this.pushed.filter(({ path }) => path === browser.path).map(({ body }) => browser.read(body))
  }

  async close(): Promise<void> {
    this.#server.closeAllConnections()
    await new Promise((resolve) => this.#server.close(resolve))
  }
}

export class PushBrowser {
  readonly path: string
  readonly subscription: PushSubscriptionBody
  readonly #keys = createECDH('prime256v1')
  readonly #auth = randomBytes(16)

  constructor(service: PushService, path: string) {
    this.path = path
    this.#keys.generateKeys()
    this.subscription = {
      endpoint: `${service.url}${path}`,
      keys: { p256dh: this.#keys.getPublicKey('base64url'), auth: this.#auth.toString('base64url') },
    }
  }

  /** RFC 8291 over RFC 8188, of one record. */
  read(body: Buffer): unknown {
    const salt = body.subarray(0, 16)
    const keyEnd = 21 + body.readUInt8(20)
    const sender = body.subarray(21, keyEnd)
    const derive = (secret: Buffer, by: Buffer, info: Buffer, bytes: number): Buffer =>
      Buffer.from(hkdfSync('sha256', secret, by, info, bytes))
    const info = Buffer.concat([Buffer.from('WebPush: info\0'), this.#keys.getPublicKey(), sender])
    const secret = derive(this.#keys.computeSecret(sender), this.#auth, info, 32)
    const key = derive(secret, salt, Buffer.from('Content-Encoding: aes128gcm\0'), 16)
    const nonce = derive(secret, salt, Buffer.from('Content-Encoding: nonce\0'), 12)
    const decipher = createDecipheriv('aes-128-gcm', key, nonce)
    decipher.setAuthTag(body.subarray(-16))
    const text = Buffer.concat([decipher.update(body.subarray(keyEnd, -16)), decipher.final()]).toString()
    return JSON.parse(text.slice(0, text.lastIndexOf('\u0002')))
  }
}
