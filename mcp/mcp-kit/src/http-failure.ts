/** Maps an HTTP status of a third-party API to a failure of a tool. */
import { ToolFailure } from './tool-failure.ts'

interface FailedAnswer {
  /** Its name for people: `Duffel`. */
  service: string
  status: number
  /** Hint for a 401: the setting to renew. */
  credential: string
  /** The missing thing after a 404. */
  subject: string
  /** Message of the service. */
  said?: string | undefined
  /** `Retry-After`, or another header with seconds or a date in it. */
  retryAfter?: string | null | undefined
  cause?: unknown
}

const SAID_CHARS = 300
/** Longest wait in an answer: a day. */
const MAX_WAIT_SECONDS = 86_400

export function failureOfStatus(answer: FailedAnswer, now: number): ToolFailure {
  const { service, status, credential, subject, cause } = answer
  const said = answer.said === undefined || answer.said === '' ? '' : ` It says: ${short(answer.said)}`
  switch (status) {
    case 401:
      return new ToolFailure('needs_auth', `${service} rejected the credential (401). ${credential}`, {
        cause,
      })
    case 403:
      return new ToolFailure('forbidden', `${service} does not allow this (403).${said}`, { cause })
    case 404:
      return new ToolFailure('not_found', `${service} has no such ${subject} (404).`, { cause })
    case 429: {
      const retryAfterSeconds = waitOf(answer.retryAfter, now)
      const when = retryAfterSeconds === undefined ? 'in a while' : `in ${retryAfterSeconds} seconds`
      const message = `${service} has too many requests (429). Nothing was looked up; try again ${when}.`
      return new ToolFailure('rate_limited', message, { retryAfterSeconds, cause })
    }
    default:
  }
  if (status >= 500) {
    const retryAfterSeconds = waitOf(answer.retryAfter, now)
    const message = `${service} has an internal error (${status}). Try again later.`
    return new ToolFailure('unavailable', message, { retryAfterSeconds, cause })
  }
  return new ToolFailure('refused', `${service} rejected the request (${status}).${said}`, { cause })
}

/** Whole seconds from now, from a header with seconds or a date. */
function waitOf(header: string | null | undefined, now: number): number | undefined {
  const text = header?.trim() ?? ''
  if (text === '') return undefined
  const seconds = /^\d+$/.test(text) ? Number(text) : Math.ceil((Date.parse(text) - now) / 1000)
  return Number.isFinite(seconds) ? Math.min(Math.max(seconds, 0), MAX_WAIT_SECONDS) : undefined
}

function short(text: string): string {
  const line = text.replaceAll(/\s+/g, ' ').trim()
  return line.length <= SAID_CHARS ? line : `${line.slice(0, SAID_CHARS - 1)}…`.toWellFormed()
}
