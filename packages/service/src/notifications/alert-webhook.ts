/**
 * Posts an alert to the address that the operator has set, signed as Standard Webhooks are. Unlike
 * a push it may go to a private network: no person can name the address.
 */
import { createHmac } from 'node:crypto'
import { boundedFetch } from '@sandlot/shared/node/safe-fetch'
import { randomText } from '@sandlot/shared/base/ids'

/** The posted JSON. `text` is the part that chat programs show. */
interface AlertPost {
  type: string
  timestamp: string
  text: string
  data: object
}

/** Resolves when it was taken. Throws a `WebhookError`. */
export type PostAlert = (post: AlertPost) => Promise<void>

/** The message is for people: it names the host and not the path, which may be a secret. */
class WebhookError extends Error {
  override readonly name = 'WebhookError'
}

const TIMEOUT_MS = 10_000
const MAX_ANSWER_BYTES = 16 * 1024

export function alertPoster(address: URL, secret: string, timeoutMs = TIMEOUT_MS): PostAlert {
  const bounded = boundedFetch(fetch, { timeoutMs, maxBytes: MAX_ANSWER_BYTES })
  return async (post) => {
    const body = JSON.stringify(post)
    const id = `msg_${randomText(24)}`
    const seconds = String(Math.floor(Date.parse(post.timestamp) / 1_000))
    const signature = createHmac('sha256', secret).update(`${id}.${seconds}.${body}`).digest('base64')
    let status: number
    try {
      const response = await bounded(address, {
        method: 'POST',
        headers: {
          'content-type': 'application/json',
          'webhook-id': id,
          'webhook-timestamp': seconds,
          'webhook-signature': `v1,${signature}`,
        },
        body,
        redirect: 'manual',
      })
      await response.body?.cancel()
      status = response.status
    } catch (error) {
      const late = error instanceof Error && error.name === 'TimeoutError'
      const what = late ? `did not answer within ${timeoutMs / 1_000} s` : 'could not be reached'
      throw new WebhookError(`${address.host} ${what}.`, { cause: error })
    }
    if (status < 200 || status >= 300) throw new WebhookError(`${address.host} answered ${status}.`)
  }
}
