/** From a provider's claims to who comes in, and what their groups give them. */
import type { OidcProviderConfig } from '@sandlot/shared/account/oidc-config'
import { MAX_NAME_CHARS, emailAddress, personName, visibleName } from '@sandlot/shared/account/account-fields'
import { type Role, role } from '@sandlot/shared/account/role'
import type { ExternalIdentity } from '@sandlot/storage/accounts/external'

export type Claims = Readonly<Record<string, unknown>>

type Rules = Pick<
  OidcProviderConfig,
  'name' | 'groupsClaim' | 'requiredGroup' | 'domains' | 'trusted' | 'roles' | 'teams'
>

interface Reading {
  identity: ExternalIdentity
  /** Unexpected claims, for the log. */
  notes: string[]
}

/** The most groups of one sign-in; Entra sends at most 200, and a directory may hold many more. */
const MAX_GROUPS = 1_000
const MAX_GROUP_CHARS = 256
const SHOWN_GROUPS = 10
/** Highest first. */
const BY_RANK = role.options

/** `partialNote`: why a part of the claims is missing. */
export function readClaims(claims: Claims, rules: Rules, partialNote?: string): Reading {
  const { groups, notes } = readGroups(claims, rules, partialNote)
  const email = readEmail(claims['email'], notes)
  const verified = claims['email_verified']
  const subject = text(claims['sub']) ?? ''
  const identity: ExternalIdentity = {
    subject,
    name: readName([claims['name'], claims['preferred_username'], email?.split('@')[0], subject]),
    email,
    emailVerified: email !== undefined && (rules.trusted || verified === true || verified === 'true'),
    ...(rules.roles === undefined || groups === 'not told' ? {} : { role: highest(groups, rules.roles) }),
    ...(rules.teams === undefined || groups === 'not told' ? {} : { teams: namesOf(groups, rules.teams) }),
  }
  if (verified !== undefined && typeof verified !== 'boolean')
    notes.push(`email_verified is ${kindOf(verified)}, not a boolean`)
  const refused = refusalOf(identity, groups, notes, rules, verified !== undefined)
  if (groups === 'not told' && (rules.roles ?? rules.teams) !== undefined)
    notes.push('the provider sent no groups, so role and teams stay as they were')
  return { identity: refused === undefined ? identity : { ...identity, ...refused }, notes }
}

/** `isTold`: whether the address is verified. */
function refusalOf(
  { email, emailVerified }: ExternalIdentity,
  groups: Groups,
  notes: readonly string[],
  { name: provider, requiredGroup, groupsClaim, domains }: Rules,
  isTold: boolean,
): Pick<ExternalIdentity, 'refused' | 'unproven'> | undefined {
  if (requiredGroup !== undefined && (groups === 'not told' || !groups.has(requiredGroup)))
    return {
      refused: `${provider} lets in only people of the group “${requiredGroup}”. ${found(groups, groupsClaim, notes)}`,
      ...(groups === 'not told' ? { unproven: true } : {}),
    }
  if (domains === undefined) return undefined
  if (email === undefined)
    return {
      refused: `${provider} lets in only addresses of ${domains.join(', ')}, and yours is absent${inBrackets(notes)}.`,
      unproven: true,
    }
  if (!domains.includes(email.split('@').at(-1) ?? ''))
    return { refused: `${provider} lets in only addresses of ${domains.join(', ')}, and yours is ${email}.` }
  if (!emailVerified)
    return {
      refused: `${provider} does not say that the address ${email} is verified.`,
      ...(isTold ? {} : { unproven: true }),
    }
  return undefined
}

/** None is an empty set. An absent or unreadable claim means nothing about a person. */
type Groups = ReadonlySet<string> | 'not told'

function readGroups(
  claims: Claims,
  rules: Rules,
  partialNote: string | undefined,
): { groups: Groups; notes: string[] } {
  const { groupsClaim: path } = rules
  const notes = partialNote === undefined ? [] : [partialNote]
  const withoutGroups = (...more: string[]) => ({ groups: 'not told' as const, notes: [...notes, ...more] })
  if (path === undefined) return withoutGroups()
  const value = valueAt(claims, path)
  if (value === undefined)
    return withoutGroups(
      isOverage(claims, path)
        ? `there are too many groups for the claim ${path}, and the provider left it out (overage)`
        : `the claim ${path} is absent`,
    )
  const list = typeof value === 'string' ? inText(value, path, rules, notes) : value
  if (!Array.isArray(list)) return withoutGroups(`the claim ${path} is ${kindOf(value)}, not a list`)
  const usable = list.filter((one): one is string => typeof one === 'string' && one.length <= MAX_GROUP_CHARS)
  if (usable.length < list.length)
    notes.push(`${list.length - usable.length} of ${list.length} entries of ${path} are no names of groups`)
  if (usable.length > MAX_GROUPS)
    notes.push(`${path} has ${usable.length} groups; only the first ${MAX_GROUPS} count`)
  if (usable.length === 0 && list.length > 0) return withoutGroups()
  return { groups: new Set(usable.slice(0, MAX_GROUPS)), notes }
}

/** Entra names another address for groups that do not fit (`_claim_names`, `hasgroups`). */
function isOverage(claims: Claims, path: string): boolean {
  const elsewhere = claims['_claim_names']
  const has = claims['hasgroups']
  const isElsewhere = typeof elsewhere === 'object' && elsewhere !== null && Object.hasOwn(elsewhere, path)
  return isElsewhere || has === true || has === 'true'
}

/** Several in one text, unless a group of the configuration is called so. */
function inText(
  value: string,
  path: string,
  { requiredGroup, roles = {}, teams = {} }: Rules,
  notes: string[],
): string[] {
  if (value.trim() === '') return []
  const known = [requiredGroup, ...Object.keys(roles), ...Object.keys(teams)]
  if (known.includes(value) || !value.includes(',')) return [value]
  const groups = value.split(',').flatMap((one) => (one.trim() === '' ? [] : [one.trim()]))
  notes.push(`the claim ${path} is one text with commas, read as ${groups.length} groups`)
  return groups
}

/** The first that an account can be called. */
function readName(candidates: readonly unknown[]): string {
  for (const one of candidates) {
    const name = personName.safeParse(typeof one === 'string' ? shortened(one) : one)
    if (name.success) return name.data
  }
  return ''
}

function shortened(name: string): string {
  return visibleName(name)
    .slice(0, MAX_NAME_CHARS)
    .replace(/[\uD800-\uDBFF]$/, '')
}

function readEmail(value: unknown, notes: string[]): string | undefined {
  const said = text(value)
  if (said === undefined) return undefined
  const email = emailAddress.safeParse(said.trim().toLowerCase())
  if (!email.success) notes.push('email is not one address')
  return email.data
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

function found(groups: Groups, path: string | undefined, notes: readonly string[]): string {
  if (groups === 'not told' || groups.size === 0)
    return `It named no groups for you: ${notes.join('; ') || `${path} is empty`}.`
  const shown = [...groups].slice(0, SHOWN_GROUPS).join(', ')
  const more = groups.size > SHOWN_GROUPS ? ` and ${groups.size - SHOWN_GROUPS} more` : ''
  return `It says that you are in ${shown}${more}${inBrackets(notes)}.`
}

function inBrackets(notes: readonly string[]): string {
  return notes.length === 0 ? '' : ` (${notes.join('; ')})`
}

function text(value: unknown): string | undefined {
  return typeof value === 'string' && value !== '' ? value : undefined
}

function kindOf(value: unknown): string {
  if (value === null) return 'null'
  return Array.isArray(value) ? 'a list' : typeof value === 'object' ? 'an object' : `a ${typeof value}`
}
