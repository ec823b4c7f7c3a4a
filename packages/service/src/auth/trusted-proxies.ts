/** Proxies whose word about a client's address counts: the setting `SANDLOT_TRUSTED_PROXIES`. */
import { BlockList, isIP } from 'node:net'
import { networkInterfaces } from 'node:os'
import { z } from 'zod'

/** The networks of this machine, or of the container it is, where there is a public address. */
const OWN_NETWORKS = 'own-networks'
const LOOPBACK = ['127.0.0.0/8', '::1']

/** Addresses and networks (CIDR), with commas between; undefined where it is not set. */
export const trustedProxyNames = z
  .string()
  .transform((list) => list.split(',').map((name) => name.trim()))
  .transform((names) => names.filter((name) => name !== ''))
  .refine((names) => names.every((name) => name === OWN_NETWORKS || isNetwork(name)), {
    error: `must be addresses like 10.0.0.2 and networks like 10.0.0.0/8 or fd00::/8, or ${OWN_NETWORKS}, with commas between`,
  })
  .optional()

function isNetwork(name: string): boolean {
  const [address = '', bits, ...more] = name.split('/')
  const most = { 4: 32, 6: 128 }[isIP(address)]
  return (
    most !== undefined &&
    !address.includes('%') &&
    more.length === 0 &&
    (bits === undefined || (/^\d{1,3}$/.test(bits) && Number(bits) <= most))
  )
}

/** None named: proxies on this machine, where people come by a public address. */
export function trustedProxies(
  names: readonly string[] | undefined,
  publicUrl: string | undefined,
): BlockList {
  const trusted = new BlockList()
  const isProxied = publicUrl !== undefined
  for (const name of names ?? (isProxied ? LOOPBACK : []))
    for (const network of name !== OWN_NETWORKS ? [name] : isProxied ? ownNetworks() : []) {
      const [address = '', bits] = network.split('/')
      const family = familyOf(address)
      trusted.addSubnet(address, bits === undefined ? (family === 'ipv4' ? 32 : 128) : Number(bits), family)
    }
  return trusted
}

function ownNetworks(): string[] {
  return Object.values(networkInterfaces()).flatMap((all = []) => all.flatMap(({ cidr }) => cidr ?? []))
}

/**
 * The client of a request from `peer`: where that is a trusted proxy, the last address in its
 * `X-Forwarded-For` that is of none. Clients control those before it.
 */
export function clientAddress(peer: string, forwardedFor: string | undefined, trusted: BlockList): string {
  const hops = (forwardedFor ?? '').split(',').map(plainAddress)
  let client = plainAddress(peer)
  while (isIP(client) !== 0 && trusted.check(client, familyOf(client))) {
    const before = hops.pop()
    if (before === undefined || isIP(before) === 0) break
    client = before
  }
  return client
}

function familyOf(address: string): 'ipv4' | 'ipv6' {
  return isIP(address) === 6 ? 'ipv6' : 'ipv4'
}

/** Without the port that some proxies add, the brackets of IPv6 before it, and a zone. */
export function plainAddress(address: string): string {
  const [, bracketed, v4] = /^\[([^\]]+)\](?::\d+)?$|^([\d.]+):\d+$/.exec(address.trim()) ?? []
  return (bracketed ?? v4 ?? address.trim()).replace(/^::ffff:(?=[\d.]+$)/i, '').replace(/%.*$/, '')
}
