/** A provider's discovery document (OpenID Connect Discovery 1.0), checked. */
import { z } from 'zod'
import { parseJson } from '../base/json.ts'
import { messageOf } from '../base/errors.ts'
import { type Fetch, boundedFetch, safeFetch } from './safe-fetch.ts'

const MAX_BYTES = 1024 * 1024
const TIMEOUT_MS = 10_000

const endpoint = z.url({ protocol: /^https?$/ })

const discovery = z.object({
  issuer: z.string(),
  authorization_endpoint: endpoint,
  token_endpoint: endpoint,
  jwks_uri: endpoint,
  userinfo_endpoint: endpoint.optional(),
  end_session_endpoint: endpoint.optional(),
  id_token_signing_alg_values_supported: z.array(z.string()).optional(),
  token_endpoint_auth_methods_supported: z.array(z.string()).optional(),
})
export type OidcDiscovery = z.infer<typeof discovery>

/** Discovery failed; the message has the reason, and the next step if known. */
class DiscoveryError extends Error {
  override readonly name = 'DiscoveryError'
}

/**
 * A bounded `fetch` for a provider. The issuer's host is the operator's choice, and may be in a
 * private network; other hosts come from the document, and must be public.
 */
export function providerFetch(issuer: string): Fetch {
  const bounds = { maxBytes: MAX_BYTES, timeoutMs: TIMEOUT_MS }
  const named = boundedFetch((url, init) => fetch(url, { ...init, redirect: 'manual' }), bounds)
  const other = safeFetch({ ...bounds, hint: ', and not the host of the issuer' })
  const { hostname } = new URL(issuer)
  return (url, init) => (new URL(url).hostname === hostname ? named : other)(url, init)
}

/** Throws `DiscoveryError`. */
export async function readDiscovery(issuer: string, signal?: AbortSignal): Promise<OidcDiscovery> {
  const url = `${issuer.replace(/\/$/, '')}/.well-known/openid-configuration`
  const fail = (problem: string, cause?: unknown): never => {
    throw new DiscoveryError(`${url} ${problem}`, { cause })
  }
  let status: number
  let text: string
  try {
    const response = await providerFetch(issuer)(url, { headers: { accept: 'application/json' }, signal })
    status = response.status
    text = await response.text()
  } catch (error) {
    return fail(`cannot be read: ${fetchProblem(error)}`, error)
  }
  if (status !== 200) return fail(`answers with status ${status}. Is the issuer right?`)
  const parsed = discovery.safeParse(parseJson(text))
  if (!parsed.success) {
    const [first] = parsed.error.issues
    return fail(`is no discovery document (${first?.path.join('.') ?? ''} ${first?.message ?? ''})`)
  }
  const found = parsed.data
  if (found.issuer !== issuer)
    return fail(
      `is of the issuer ${found.issuer.slice(0, 300)}. Set "issuer" to exactly that, if it is the one.`,
    )
  const endpoints = [
    found.authorization_endpoint,
    found.token_endpoint,
    found.jwks_uri,
    found.userinfo_endpoint,
  ]
  if (issuer.startsWith('https:') && endpoints.some((one) => one?.startsWith('http:') === true))
    return fail('names endpoints without https')
  return found
}

/** The innermost cause of a failed request, because `fetch` says only “failed”. */
export function fetchProblem(error: unknown): string {
  if (!(error instanceof Error) || error.cause === undefined) return messageOf(error)
  return fetchProblem(error.cause)
}
