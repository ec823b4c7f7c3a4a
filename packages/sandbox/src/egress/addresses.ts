import { BlockList, isIP } from 'node:net'

import { SandboxError } from '../errors.ts'

/** IPv4 that is not the public internet: the IANA special-purpose registry, multicast and what is reserved. */
const NOT_PUBLIC_V4: readonly [string, number][] = [
  ['0.0.0.0', 8],
  ['10.0.0.0', 8],
  ['100.64.0.0', 10],
  ['127.0.0.0', 8],
  ['169.254.0.0', 16],
  ['172.16.0.0', 12],
  ['192.0.0.0', 24],
  ['192.0.2.0', 24],
  ['192.88.99.0', 24],
  ['192.168.0.0', 16],
  ['198.18.0.0', 15],
  ['198.51.100.0', 24],
  ['203.0.113.0', 24],
  ['224.0.0.0', 4],
  ['240.0.0.0', 4],
]

/** What is not public although it lies in 2000::/3; the rest of IPv6 (mapped, link-local, ULA, multicast) is not in it. */
const NOT_PUBLIC_V6: readonly [string, number][] = [
  // Protocol assignments, Teredo among them, which has an IPv4 address inside.
  ['2001::', 23],
  ['2001:db8::', 32],
  // 6to4: an IPv4 address inside.
  ['2002::', 16],
  ['3fff::', 20],
]

const notPublic = new BlockList()
for (const [net, bits] of NOT_PUBLIC_V4) notPublic.addSubnet(net, bits, 'ipv4')
for (const [net, bits] of NOT_PUBLIC_V6) notPublic.addSubnet(net, bits, 'ipv6')
const globalV6 = new BlockList()
globalV6.addSubnet('2000::', 3, 'ipv6')

/** Whether an address as a resolver gives it is one of the public internet. Anything unreadable is not. */
export function isPublicAddress(address: string): boolean {
  const family = isIP(address)
  if (family === 4) return !notPublic.check(address, 'ipv4')
  if (family !== 6 || address.includes('%')) return false
  return globalV6.check(address, 'ipv6') && !notPublic.check(address, 'ipv6')
}

/** A list of single addresses and networks (`10.1.0.0/16`). Throws `invalid_arguments` for what is neither. */
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
