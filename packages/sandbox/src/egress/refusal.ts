import type { EgressReason } from '../sandbox.ts'

const STATUS: Record<EgressReason, string> = {
  bad_request: '400 Bad Request',
  not_allowed: '403 Forbidden',
  denied: '403 Forbidden',
  port: '403 Forbidden',
  private_address: '403 Forbidden',
  not_tls: '403 Forbidden',
  other_name: '403 Forbidden',
  unresolvable: '502 Bad Gateway',
  unreachable: '502 Bad Gateway',
  bad_answer: '502 Bad Gateway',
  broken: '502 Bad Gateway',
  too_many_connections: '429 Too Many Requests',
  byte_budget: '429 Too Many Requests',
  time_budget: '429 Too Many Requests',
  too_slow: '408 Request Timeout',
}

/** Reasons that are decisions about a host: the result of a command names them. */
const ABOUT_HOSTS: ReadonlySet<EgressReason> = new Set([
  'not_allowed',
  'denied',
  'port',
  'private_address',
  'not_tls',
  'other_name',
])

/** Reasons that are our decision; the others are failures. */
const DECIDED: ReadonlySet<EgressReason> = new Set([
  ...ABOUT_HOSTS,
  'bad_request',
  'too_many_connections',
  'byte_budget',
  'time_budget',
  'too_slow',
])

/**
 * A refused or failed request. `message` goes to the program inside and names nothing of the
 * controller.
 */
export class EgressRefused extends Error {
  override readonly name = 'EgressRefused'
  readonly reason: EgressReason
  /** The rule that refused it, if one did. */
  readonly ruleId: string | undefined

  constructor(reason: EgressReason, message: string, options?: ErrorOptions & { ruleId?: string }) {
    super(message, options)
    this.reason = reason
    this.ruleId = options?.ruleId
  }
}

export function isAboutHost(reason: EgressReason): boolean {
  return ABOUT_HOSTS.has(reason)
}

export function isDecision(reason: EgressReason): boolean {
  return DECIDED.has(reason)
}

/** The whole HTTP answer to a refused request. For a budget it says when to retry, in seconds. */
export function refusalAnswer(refused: EgressRefused, retryAfterS: number): string {
  const body = `Sandlot: ${refused.message}\n`
  const status = STATUS[refused.reason]
  return [
    `HTTP/1.1 ${status}`,
    'Content-Type: text/plain; charset=utf-8',
    `Content-Length: ${Buffer.byteLength(body)}`,
    ...(status.startsWith('429') ? [`Retry-After: ${Math.max(1, Math.ceil(retryAfterS))}`] : []),
    `X-Sandlot-Refused: ${refused.reason}`,
    'Connection: close',
    '',
    body,
  ].join('\r\n')
}
