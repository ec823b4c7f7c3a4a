/** `SANDLOT_OIDC`: sign-in providers, as read by the service and the doctor. */
import { z } from 'zod'
import { parseJson } from '../base/json.ts'
import { messageOf } from '../base/errors.ts'
import { role } from './role.ts'

const MAX_PROVIDERS = 20
/** An id in URLs: short, and safe without escapes. */
const ID = /^[a-z0-9][a-z0-9-]{0,31}$/

const issuer = z
  .url({ protocol: /^https?$/, error: 'must be an address like https://login.example.org' })
  .refine((url) => !/[?#]/.test(url), 'has no ? and no #')
  .refine(
    (url) => url.startsWith('https:') || /^(localhost|127\.|\[::1\])/.test(new URL(url).hostname),
    'must begin with https:// (http:// is for this machine only)',
  )

const domain = z
  .string()
  .trim()
  .toLowerCase()
  .regex(/^[a-z0-9-]+(\.[a-z0-9-]+)+$/, 'must be a domain like example.org, without @')

const provider = z
  .strictObject({
    /** Part of URLs, including the redirect URI. Default: derived from the name. */
    id: z.string().regex(ID, 'has 1–32 of a–z, 0–9 and -').optional(),
    /** The button's label. */
    name: z.string().trim().min(1).max(60),
    issuer,
    clientId: z.string().min(1),
    clientSecret: z.string().min(1).optional(),
    clientSecretFile: z.string().min(1).optional(),
    scopes: z.array(z.string().min(1)).default(['openid', 'profile', 'email']),
    /** Path of the claim that lists groups: `groups`, `realm_access.roles`. */
    groupsClaim: z.string().min(1).max(200).optional(),
    /** Only people in this group may sign in. */
    requiredGroup: z.string().min(1).optional(),
    /** Only addresses of these domains may sign in. */
    domains: z.array(domain).min(1).optional(),
    /** Creates accounts for new people. */
    signUp: z.boolean().default(true),
    /** Its addresses count as verified, also without its confirmation. */
    trusted: z.boolean().default(false),
    /** Group → role. */
    roles: z.record(z.string().min(1), role).optional(),
    /** Group → name of a team, which is created if missing. */
    teams: z.record(z.string().min(1), z.string().trim().min(1).max(60)).optional(),
  })
  .refine(
    ({ clientSecret, clientSecretFile }) => clientSecret === undefined || clientSecretFile === undefined,
    'has clientSecret and clientSecretFile; keep one',
  )
  .refine(
    ({ groupsClaim, requiredGroup, roles, teams }) =>
      groupsClaim !== undefined || (requiredGroup ?? roles ?? teams) === undefined,
    'needs groupsClaim for requiredGroup, roles and teams',
  )

const providers = z.array(provider).max(MAX_PROVIDERS, `has at most ${MAX_PROVIDERS} providers`)

export interface OidcProviderConfig extends Omit<z.output<typeof provider>, 'clientSecretFile'> {
  id: string
}

/**
 * The providers of `SANDLOT_OIDC`, with their secrets read; or every problem, each naming its
 * provider.
 */
export function readOidcProviders(
  text: string,
  readFile: (path: string) => string,
): { providers: OidcProviderConfig[] } | { problems: string[] } {
  const json = parseJson(text)
  if (json === undefined) return { problems: [`must be JSON like ${EXAMPLE}`] }
  const parsed = providers.safeParse(json)
  if (!parsed.success)
    return {
      problems: parsed.error.issues.map(({ path, message }) =>
        [placeOf(path), path.slice(1).join('.'), message].filter((part) => part !== '').join(' '),
      ),
    }
  const problems: string[] = []
  const read = parsed.data.map(({ clientSecretFile, ...one }): OidcProviderConfig => {
    const id = one.id ?? idOf(one.name)
    if (clientSecretFile === undefined) return { ...one, id }
    try {
      return { ...one, id, clientSecret: readFile(clientSecretFile).trimEnd() }
    } catch (error) {
      problems.push(`${one.name}: cannot read clientSecretFile (${messageOf(error)})`)
      return { ...one, id }
    }
  })
  for (const key of ['id', 'issuer'] as const)
    for (const [value, group] of Map.groupBy(read, (one) => one[key]))
      if (group.length > 1)
        problems.push(`${group.map(({ name }) => name).join(' and ')} have the same ${key} ${value}`)
  return problems.length > 0 ? { problems } : { providers: read }
}

const EXAMPLE =
  '[{"name": "Keycloak", "issuer": "https://login.example.org/realms/work", "clientId": "sandlot", "clientSecret": "…"}]'

/** Counts from one, for people. */
function placeOf([place]: readonly PropertyKey[]): string {
  return typeof place === 'number' ? `provider ${place + 1}:` : ''
}

function idOf(name: string): string {
  const id = name
    .toLowerCase()
    .replaceAll(/[^a-z0-9]+/g, '-')
    .replaceAll(/^-+|-+$/g, '')
    .slice(0, 32)
  return ID.test(id) ? id : 'provider'
}
