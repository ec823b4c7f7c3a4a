/**
 * The only file that knows Google's library: one page of events out, its answer or one of our
 * failures back.
 */
import { auth, calendar } from '@googleapis/calendar'
import { withSignal } from '@sandlot/mcp-kit/abort-requests'
import { failureOfStatus } from '@sandlot/mcp-kit/http-failure'
import { ToolFailure } from '@sandlot/mcp-kit/tool-failure'
import { z } from 'zod'
import type { Credential } from './config.ts'
import type { Listing } from './list-input.ts'

const HELP =
  'Give a new GOOGLE_ACCESS_TOKEN, or a GOOGLE_REFRESH_TOKEN with its client, that may read calendars (scope calendar.events.readonly).'

interface GoogleOptions {
  credential: Credential | undefined
  apiUrl: string
  tokenUrl: string
  /** Epoch milliseconds. */
  now: () => number
}

interface PageRequest extends Listing {
  pageToken?: string
}

/** Ask for one page. Returns the answer's body as it came. Throws `ToolFailure`. */
export type AskPage = (request: PageRequest, signal: AbortSignal) => Promise<unknown>

export function makeAskPage({ credential, apiUrl, tokenUrl, now }: GoogleOptions): AskPage {
  const client = credential === undefined ? undefined : calendarClient(credential, apiUrl, tokenUrl)
  return async (request, signal) => {
    if (client === undefined)
      throw new ToolFailure('needs_auth', `Google Calendar is not connected yet. ${HELP}`)
    const order = request.singleEvents ? { orderBy: 'startTime' } : {}
    try {
      // The library passes the signal to the request itself, but not to the one for a new token.
      const answer = await withSignal(signal, () =>
        client.events.list({ ...request, ...order }, { signal, retry: false, responseType: 'json' }),
      )
      return answer.data
    } catch (error) {
      throw failureOf(error, now())
    }
  }
}

function calendarClient(
  credential: Credential,
  rootUrl: string,
  tokenUrl: string,
): ReturnType<typeof calendar> {
  const client =
    credential.kind === 'refresh'
      ? new auth.OAuth2({
          clientId: credential.clientId,
          clientSecret: credential.clientSecret,
          endpoints: { oauth2TokenUrl: tokenUrl },
        })
      : new auth.OAuth2()
  client.setCredentials(
    credential.kind === 'refresh'
      ? { refresh_token: credential.refreshToken }
      : { access_token: credential.accessToken },
  )
  return calendar({ version: 'v3', auth: client, rootUrl })
}

/** Headers, of whatever `fetch` it is. */
type Readable = Pick<Headers, 'get'>
const isReadable = (value: unknown): boolean =>
  typeof value === 'object' && value !== null && 'get' in value && typeof value.get === 'function'

/** Of the library's errors, what we read. They also carry the whole request, which stays here. */
const failed = z.object({
  response: z.object({
    status: z.number(),
    headers: z.custom<Readable>(isReadable).optional().catch(undefined),
    data: z.unknown(),
  }),
})
const calendarError = z.object({
  error: z.object({
    message: z.string().nullish(),
    errors: z.array(z.object({ reason: z.string().nullish() })).nullish(),
  }),
})
/** As a token endpoint says it (RFC 6749, 5.2). */
const tokenError = z.object({ error: z.string() })

function failureOf(error: unknown, now: number): ToolFailure {
  const known = failed.safeParse(error).data?.response
  if (known === undefined)
    return new ToolFailure('unavailable', 'Google Calendar cannot be reached. Try again later.')
  const { status, headers, data } = known
  if (status < 400) return new ToolFailure('bad_answer', 'Google’s answer cannot be read. Try again later.')
  if (tokenError.safeParse(data).success && status < 500)
    return new ToolFailure('needs_auth', `Google gives no new token: the permission ended. ${HELP}`)
  const detail = calendarError.safeParse(data).data?.error
  const reason = detail?.errors?.[0]?.reason ?? ''
  return failureOfStatus(
    {
      service: 'Google Calendar',
      // It also says 403 to who asks too often.
      status: status === 403 && /rateLimit|quota|usageLimit/i.test(reason) ? 429 : status,
      credential: HELP,
      subject: 'calendar',
      said: detail?.message ?? undefined,
      retryAfter: headers?.get('retry-after'),
    },
    now,
  )
}
