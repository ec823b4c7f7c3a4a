/** What an HTTP status of a foreign API means for a tool. One table for all of our servers. */
import { ToolFailure } from './tool-failure.ts'

interface FailedAnswer {
  /** Its name for people: `Duffel`. */
  service: string
  status: number
  /** How the credential is called and renewed, for a 401. */
  credential: string
  /** What a 404 says is missing. */
  subject: string
  /** What the service said about it, where it is fit to be read. */
  said?: string | undefined
  /** `Retry-After`, or another header with seconds or a date in it. */
  retryAfter?: string | null | undefined
  cause?: unknown
}

const SAID_CHARS = 300
/** The longest wait that an answer names: a day. */
const MAX_WAIT_SECONDS = 86_400

export function failureOfStatus(answer: FailedAnswer, now: number): ToolFailure {
  const { service, status, credential, subject, cause } = answer
  const said = answer.said === undefined || answer.said === '' ? '' : ` It says: ${short(answer.said)}`
  switch (status) {
    case 401:
      return new ToolFailure('needs_auth', `${service} refuses the credential (401). ${credential}`, {
        cause,
      })
    case 403:
      return new ToolFailure('forbidden', `${service} does not allow this (403).${said}`, { cause })
    case 404:
      return new ToolFailure('not_found', `${service} has no such ${subject} (404).`, { cause })
    case 429: {
      const retryAfterSeconds = waitOf(answer.retryAfter, now)
      const when = retryAfterSeconds === undefined ? 'in a while' : `in ${retryAfterSeconds} seconds`
      const message = `${service} gets too many requests (429). Nothing was looked up; try again ${when}.`
      return new ToolFailure('rate_limited', message, { retryAfterSeconds, cause })
    }
    default:
  }
  if (status >= 500) {
    const retryAfterSeconds = waitOf(answer.retryAfter, now)
    const message = `${service} has a problem of its own (${status}). Try again later.`
    return new ToolFailure('unavailable', message, { retryAfterSeconds, cause })
  }
  return new ToolFailure('refused', `${service} refuses the request (${status}).${said}`, { cause })
}

/**
 * Whole seconds from now, of a header that holds seconds or a date. Undefined when it holds
 * neither.
 */
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
