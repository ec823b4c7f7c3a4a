/** Requests pages of events from Google. The only file that imports its library. */
import { auth, calendar } from '@googleapis/calendar'
import { withSignal } from '@sandlot/mcp-kit/abort-requests'
import { failureOfStatus } from '@sandlot/mcp-kit/http-failure'
import { ToolFailure } from '@sandlot/mcp-kit/tool-failure'
import { z } from 'zod'
import type { Credential } from './config.ts'
import type { Listing } from './list-input.ts'

const HELP =
  'Set a new GOOGLE_ACCESS_TOKEN, or a GOOGLE_REFRESH_TOKEN with its client, with the scope calendar.events.readonly.'

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

/** Returns the body of one page, unparsed. Throws `ToolFailure`. */
export type AskPage = (request: PageRequest, signal: AbortSignal) => Promise<unknown>

export function makeAskPage({ credential, apiUrl, tokenUrl, now }: GoogleOptions): AskPage {
  const client = credential === undefined ? undefined : calendarClient(credential, apiUrl, tokenUrl)
  return async (request, signal) => {
    if (client === undefined)
      throw new ToolFailure('needs_auth', `Google Calendar is not connected yet. ${HELP}`)
    const order = request.singleEvents ? { orderBy: 'startTime' } : {}
    try {
      // The library does not pass the signal to the request for a new token.
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

/** Headers of any `fetch`. */
type Readable = Pick<Headers, 'get'>
const isReadable = (value: unknown): boolean =>
  typeof value === 'object' && value !== null && 'get' in value && typeof value.get === 'function'

/** The fields that we read of an error, which also has the whole request with its credential. */
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
/** Error of a token endpoint (RFC 6749, 5.2). */
const tokenError = z.object({ error: z.string() })

function failureOf(error: unknown, now: number): ToolFailure {
  const known = failed.safeParse(error).data?.response
  if (known === undefined)
    return new ToolFailure('unavailable', 'Couldn’t connect to Google Calendar. Try again later.')
  const { status, headers, data } = known
  if (status < 400) return new ToolFailure('bad_answer', 'Couldn’t parse Google’s answer. Try again later.')
  if (tokenError.safeParse(data).success && status < 500)
    return new ToolFailure(
      'needs_auth',
      `Google refused a new token: the permission was revoked or has expired. ${HELP}`,
    )
  const detail = calendarError.safeParse(data).data?.error
  const reason = detail?.errors?.[0]?.reason ?? ''
  return failureOfStatus(
    {
      service: 'Google Calendar',
      // 403 can also mean too many requests.
      status: status === 403 && /rateLimit|quota|usageLimit/i.test(reason) ? 429 : status,
      credential: HELP,
      subject: 'calendar',
      said: detail?.message ?? undefined,
      retryAfter: headers?.get('retry-after'),
    },
    now,
  )
}
