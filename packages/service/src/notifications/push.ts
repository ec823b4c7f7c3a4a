/**
 * The only file that imports web-push, which encrypts and signs. The request itself goes by the
 * safe fetch, because a person's browser names where it goes.
 */
import { createECDH, createHash } from 'node:crypto'
import { createGate } from '@sandlot/shared/async/keyed-lock'
import { SandlotError } from '@sandlot/shared/base/errors'
import { isLoopback, isPrivateHost } from '@sandlot/shared/node/addresses'
import { AddressNotAllowedError, safeFetch } from '@sandlot/shared/node/safe-fetch'
import type { PushSubscriptionBody } from '@sandlot/shared/chat/notifications'
import webPush from 'web-push'

/**
 * The payload for the page's worker: text, a key of the notification that it replaces, and a path.
 */
export interface PushMessage {
  title: string
  body: string
  tag: string
  url: string
}

/** `gone`: this subscription can never be used again. `why` is for people. */
type PushOutcome = { is: 'sent' } | { is: 'gone' | 'failed'; why: string }

export interface Push {
  /** Base64url. */
  readonly publicKey: string
  /** Throws `bad_request` for a subscription that nothing can be sent to. */
  check(subscription: PushSubscriptionBody): void
  /** Never rejects. */
  send(subscription: PushSubscriptionBody, message: PushMessage): Promise<PushOutcome>
}

interface PushOptions {
  /** The VAPID key pair is made from it, so that it is the same after a restart. */
  secret: string
  /** An https: or mailto: address, by which a push service reaches the operator. */
  subject: string
  /** Push services on this machine are allowed: for tests. */
  loopback?: boolean
  timeoutMs?: number
}

const TIMEOUT_MS = 10_000
const MAX_ANSWER_BYTES = 16 * 1024
const MOST_AT_ONCE = 8
/** Seconds for which a push service keeps a notice for a browser that is off. */
const TTL_SECONDS = 60 * 60

export function openPush({ secret, subject, loopback = false, timeoutMs = TIMEOUT_MS }: PushOptions): Push {
  const keys = createECDH('prime256v1')
  // Not `getPrivateKey()`, which leaves out leading zeros: every 256th key would be too short.
  const privateKey = createHash('sha256').update(secret).digest()
  keys.setPrivateKey(privateKey)
  const publicKey = keys.getPublicKey('base64url')
  const vapidDetails = { subject, publicKey, privateKey: privateKey.toString('base64url') }
  const fetch = safeFetch({ loopback, timeoutMs, maxBytes: MAX_ANSWER_BYTES })
  const gate = createGate(MOST_AT_ONCE)

  const requestOf = (subscription: PushSubscriptionBody, message: PushMessage) =>
    webPush.generateRequestDetails(subscription, JSON.stringify(message), {
      vapidDetails,
      TTL: TTL_SECONDS,
      urgency: 'high',
      // At the push service as well a newer notice of a chat replaces an older one.
      topic: createHash('sha256').update(message.tag).digest('base64url').slice(0, 32),
      contentEncoding: 'aes128gcm',
    })

  return {
    publicKey,
    check(subscription) {
      const { protocol, hostname } = new URL(subscription.endpoint)
      const allowed = loopback && isLoopback(hostname)
      if (isPrivateHost(hostname) && !allowed)
        throw new SandlotError('bad_request', 'This push service lies in a private network.')
      if (protocol !== 'https:' && !allowed)
        throw new SandlotError('bad_request', 'A push service has an https address.')
      try {
        requestOf(subscription, { title: '', body: '', tag: '', url: '' })
      } catch (error) {
        throw new SandlotError('bad_request', 'The keys of this subscription do not fit.', { cause: error })
      }
    },
    send: (subscription, message) =>
      gate(async (): Promise<PushOutcome> => {
        const { host } = new URL(subscription.endpoint)
        try {
          const { method, headers, body, endpoint } = requestOf(subscription, message)
          const response = await fetch(endpoint, {
            method,
            headers: textHeaders(headers),
            body: new Uint8Array(body),
          })
          await response.body?.cancel()
          return outcomeOf(host, response.status)
        } catch (error) {
          if (error instanceof AddressNotAllowedError)
            return { is: 'gone', why: `The push service ${host} may not be used: ${error.message}.` }
          const cause = error instanceof Error ? (error.cause ?? error) : error
          const late = cause instanceof Error && cause.name === 'TimeoutError'
          const what = late ? `did not answer within ${timeoutMs / 1_000} s` : 'could not be reached'
          return { is: 'failed', why: `The push service ${host} ${what}.` }
        }
      }),
  }
}

function outcomeOf(host: string, status: number): PushOutcome {
  if (status >= 200 && status < 300) return { is: 'sent' }
  if (status === 404 || status === 410)
    return { is: 'gone', why: `The push service ${host} does not know this browser any more.` }
  if (status >= 300 && status < 400)
    return { is: 'gone', why: `The push service ${host} redirects, which is not followed.` }
  if (status === 401 || status === 403)
    return { is: 'gone', why: `The push service ${host} refuses the key of this Sandlot.` }
  return { is: 'failed', why: `The push service ${host} answered ${status}.` }
}

function textHeaders(headers: Record<string, unknown>): Record<string, string> {
  // The length is the safe fetch's to say.
  const named = Object.entries(headers).filter(([name]) => name.toLowerCase() !== 'content-length')
  return Object.fromEntries(named.map(([name, value]) => [name, String(value)]))
}
