import { BlockList, isIP } from 'node:net'

import { isPublicAddress } from '#shared/node/addresses'
import { orAborted } from '#shared/async/or-aborted'

import { SandboxError } from '../errors.ts'
import { DEFAULT_BUDGETS, type EgressBudgets } from './budget.ts'
import { type Authority, readHost } from './host.ts'
import { EgressRefused } from './refusal.ts'
import { HOP_BY_HOP } from './request.ts'
import { resolveName } from './resolve.ts'
import { readRules, type Rules } from './rules.ts'

/**
 * A header that the controller adds for one host. Only to plain HTTP requests: TLS is opaque to it.
 */
export interface EgressCredential {
  /** Default `authorization`. Replaces a header of this name that the program sent. */
  header?: string
  value: string
}

export interface EgressPolicyOptions {
  /**
   * `example.org`, `*.example.org`, with `:port` or for 80 and 443, or names of `EGRESS_PRESETS`.
   */
  allow: readonly string[]
  /** Non-public addresses and networks that may be dialled: a private mirror, a test's server. */
  allowAddresses?: readonly string[]
  /** Host → header. Never enters a sandbox. */
  credentials?: Readonly<Record<string, EgressCredential>>
  budgets?: Partial<EgressBudgets>
  /** All addresses of a name. Default: asks the name servers of this machine. */
  resolve?: (host: string) => Promise<readonly string[]>
}

export interface EgressPolicy {
  readonly budgets: EgressBudgets
  /** By `list`, default `allow`. Throws `EgressRefused` `not_allowed` or `port`. */
  check(authority: Authority, list?: Rules): void
  /** The addresses to dial, all of them checked. Throws `EgressRefused`. */
  addresses(authority: Authority, signal: AbortSignal): Promise<readonly string[]>
  credential(host: string): Required<EgressCredential> | undefined
}

/** Throws `invalid_arguments` for an invalid rule, address, header or budget. */
export function createPolicy(options: EgressPolicyOptions): EgressPolicy {
  const rules = readRules(options.allow)
  const isAllowedAddress = readAddressList(options.allowAddresses ?? [])
  const credentials = readCredentials(options.credentials ?? {})
  const resolve = options.resolve ?? resolveName
  return {
    budgets: readBudgets(options.budgets ?? {}),
    check(authority, list = rules) {
      const { host, port } = authority
      const answer = list.allows(authority)
      if (answer === 'no')
        throw new EgressRefused(
          'not_allowed',
          `${host} is not on the list of hosts that this sandbox may reach.`,
        )
      if (answer === 'port')
        throw new EgressRefused('port', `${host} may be reached, but not on port ${port}.`)
    },
    async addresses({ host }, signal) {
      const found = await resolved(resolve, host, signal)
      // One private answer among public ones is a rebinding attack or a mistake; neither is
      // dialled.
      const wrong = found.find((address) => !isPublicAddress(address) && !isAllowedAddress(address))
      if (found.length === 0) throw new EgressRefused('unresolvable', `there is no address for ${host}.`)
      if (wrong !== undefined)
        throw new EgressRefused(
          'private_address',
          `${host} leads to an address that is not on the public internet.`,
        )
      return found
    },
    credential: (host) => credentials.get(host),
  }
}

async function resolved(
  resolve: (host: string) => Promise<readonly string[]>,
  host: string,
  signal: AbortSignal,
): Promise<readonly string[]> {
  try {
    signal.throwIfAborted()
    return await orAborted(resolve(host), signal)
  } catch (cause) {
    if (signal.aborted) throw cause
    throw new EgressRefused('unresolvable', `there is no address for ${host}.`, { cause })
  }
}

function readCredentials(entries: Readonly<Record<string, EgressCredential>>) {
  const read = new Map<string, Required<EgressCredential>>()
  for (const [name, { header = 'authorization', value }] of Object.entries(entries)) {
    const host = readHost(name)
    if ('problem' in host)
      throw new SandboxError('invalid_arguments', `Credentials for "${name}": ${host.problem}.`)
    if (
      !/^[A-Za-z0-9-]+$/.test(header) ||
      HOP_BY_HOP.has(header.toLowerCase()) ||
      !/^[\x20-\x7e]+$/.test(value)
    )
      throw new SandboxError(
        'invalid_arguments',
        `Credentials for "${name}": the header or its value has characters that a header cannot have.`,
      )
    read.set(host.host, { header: header.toLowerCase(), value })
  }
  return read
}

function readBudgets(given: Partial<EgressBudgets>): EgressBudgets {
  const set = Object.entries(given).filter(([, value]) => value !== undefined)
  const budgets: EgressBudgets = { ...DEFAULT_BUDGETS, ...Object.fromEntries(set) }
  for (const [name, value] of Object.entries(budgets))
    if (!(Number.isSafeInteger(value) && value > 0))
      throw new SandboxError(
        'invalid_arguments',
        `Egress budget ${name}: ${value} is not a positive whole number.`,
      )
  if (budgets.connections > 4_096)
    throw new SandboxError('invalid_arguments', 'Egress budget connections: at most 4,096.')
  return budgets
}

/** Single addresses and networks (`10.1.0.0/16`). Throws `invalid_arguments` for anything else. */
export function readAddressList(entries: readonly string[]): (address: string) => boolean {
  const list = new BlockList()
  for (const entry of entries) {
    const [address = '', bits, ...more] = entry.split('/')
    const family = address.includes('%') ? 0 : isIP(address)
    const most = family === 4 ? 32 : 128
    const prefix = bits === undefined ? most : /^\d{1,3}$/.test(bits) ? Number(bits) : -1
    if (family === 0 || more.length > 0 || prefix < 0 || prefix > most)
      throw new SandboxError(
        'invalid_arguments',
        `"${entry}" is not an address or a network like 10.1.2.3 or 10.1.0.0/16.`,
      )
    list.addSubnet(address, prefix, family === 4 ? 'ipv4' : 'ipv6')
  }
  return (address) =>
    isIP(address) > 0 && !address.includes('%') && list.check(address, isIP(address) === 4 ? 'ipv4' : 'ipv6')
}
