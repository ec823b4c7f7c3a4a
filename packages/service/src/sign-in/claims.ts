/** From a provider's claims to who comes in, and what their groups give them. */
import type { OidcProviderConfig } from '@sandlot/shared/team/oidc-config'
import { type Role, role } from '@sandlot/shared/team/role'
import type { ExternalIdentity } from '@sandlot/storage/accounts/external'

export type Claims = Readonly<Record<string, unknown>>

type Rules = Pick<
  OidcProviderConfig,
  'name' | 'groupsClaim' | 'requiredGroup' | 'domains' | 'trusted' | 'roles' | 'teams'
>

interface Reading {
  identity: ExternalIdentity
  /** What was unexpected in the claims; for the log. */
  notes: string[]
}

/** Of one sign-in; Entra sends at most 200, and a directory can hold more than is of use. */
const MAX_GROUPS = 1_000
const MAX_GROUP_CHARS = 256
const SHOWN_GROUPS = 10
/** Highest first. */
const BY_RANK = role.options

export function readClaims(claims: Claims, rules: Rules): Reading {
  const { groups, notes } = readGroups(claims, rules.groupsClaim)
  const email = text(claims['email'])?.toLowerCase()
  const verified = claims['email_verified']
  const identity: ExternalIdentity = {
    subject: text(claims['sub']) ?? '',
    name: text(claims['name']) ?? text(claims['preferred_username']) ?? email?.split('@')[0] ?? '',
    email,
    emailVerified: email !== undefined && (rules.trusted || verified === true || verified === 'true'),
    ...(rules.roles === undefined ? {} : { role: highest(groups, rules.roles) }),
    ...(rules.teams === undefined ? {} : { teams: namesOf(groups, rules.teams) }),
  }
  if (verified !== undefined && typeof verified !== 'boolean')
    notes.push(`email_verified is ${kindOf(verified)}, not a boolean`)
  const refused = refusalOf(identity, groups, notes, rules)
  return { identity: refused === undefined ? identity : { ...identity, refused }, notes }
}

function refusalOf(
  { email, emailVerified }: ExternalIdentity,
  groups: ReadonlySet<string>,
  notes: readonly string[],
  { name: provider, requiredGroup, groupsClaim, domains }: Rules,
): string | undefined {
  if (requiredGroup !== undefined && !groups.has(requiredGroup))
    return `${provider} lets in only people of the group “${requiredGroup}”. ${found(groups, groupsClaim, notes)}`
  if (domains === undefined) return undefined
  if (!domains.includes(email?.split('@').at(-1) ?? ''))
    return `${provider} lets in only addresses of ${domains.join(', ')}, and yours is ${email ?? 'absent'}.`
  if (!emailVerified) return `${provider} does not say that the address ${email} is verified.`
  return undefined
}

function readGroups(
  claims: Claims,
  path: string | undefined,
): { groups: ReadonlySet<string>; notes: string[] } {
  if (path === undefined) return { groups: new Set(), notes: [] }
  const value = valueAt(claims, path)
  if (value === undefined) return { groups: new Set(), notes: [`the claim ${path} is absent`] }
  const list = typeof value === 'string' ? [value] : value
  if (!Array.isArray(list))
    return { groups: new Set(), notes: [`the claim ${path} is ${kindOf(value)}, not a list`] }
  const usable = list.filter((one): one is string => typeof one === 'string' && one.length <= MAX_GROUP_CHARS)
  const notes: string[] = []
  if (usable.length < list.length)
    notes.push(`${list.length - usable.length} of ${list.length} entries of ${path} are no names of groups`)
  if (usable.length > MAX_GROUPS)
    notes.push(`${path} has ${usable.length} groups; only the first ${MAX_GROUPS} count`)
  return { groups: new Set(usable.slice(0, MAX_GROUPS)), notes }
}

/** A claim whose own name has dots (`https://example.org/groups`) wins over a path. */
function valueAt(claims: Claims, path: string): unknown {
  if (Object.hasOwn(claims, path)) return claims[path]
  let value: unknown = claims
  for (const step of path.split('.')) {
    if (typeof value !== 'object' || value === null || !Object.hasOwn(value, step)) return undefined
    value = (value as Record<string, unknown>)[step]
  }
  return value
}

function highest(groups: ReadonlySet<string>, roles: Readonly<Record<string, Role>>): Role | null {
  const given = Object.entries(roles).filter(([group]) => groups.has(group))
  return BY_RANK.find((one) => given.some(([, mapped]) => mapped === one)) ?? null
}

function namesOf(groups: ReadonlySet<string>, teams: Readonly<Record<string, string>>): string[] {
  const names = Object.entries(teams).filter(([group]) => groups.has(group))
  return [...new Set(names.map(([, name]) => name))]
}

function found(groups: ReadonlySet<string>, path: string | undefined, notes: readonly string[]): string {
  if (groups.size === 0) return `It named no groups for you: ${notes.join('; ') || `${path} is empty`}.`
  const shown = [...groups].slice(0, SHOWN_GROUPS).join(', ')
  const more = groups.size > SHOWN_GROUPS ? ` and ${groups.size - SHOWN_GROUPS} more` : ''
  return `It says that you are in ${shown}${more}.`
}

function text(value: unknown): string | undefined {
  return typeof value === 'string' && value !== '' ? value : undefined
}

function kindOf(value: unknown): string {
  if (value === null) return 'null'
  return Array.isArray(value) ? 'a list' : typeof value === 'object' ? 'an object' : `a ${typeof value}`
}
