/** Which addresses and hosts are of the public internet. For Node only. */
import { BlockList, isIP } from 'node:net'

/**
 * IPv4 that is not the public internet: the IANA special-purpose registry, multicast and what is
 * reserved.
 */
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

/**
 * What is not public although it lies in 2000::/3; the rest of IPv6 (mapped, link-local, ULA,
 * multicast) is not in it.
 */
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

/**
 * Whether an address as a resolver gives it is one of the public internet. Anything unreadable is
 * not.
 */
export function isPublicAddress(address: string): boolean {
  const family = isIP(address)
  if (family === 4) return !notPublic.check(address, 'ipv4')
  if (family !== 6 || address.includes('%')) return false
  return globalV6.check(address, 'ipv6') && !notPublic.check(address, 'ipv6')
}

/** Whether a URL's hostname, or an address, is this machine; a name is not resolved. */
export function isLoopback(hostname: string): boolean {
  const host = withoutBrackets(hostname)
  return host === 'localhost' || host === '::1' || /^127\.\d+\.\d+\.\d+$/.test(host)
}

/** Whether a URL's hostname is this machine or on a private network; a name is not resolved. */
export function isPrivateHost(hostname: string): boolean {
  const host = withoutBrackets(hostname).replace(/\.$/, '')
  if (isIP(host) !== 0) return !isPublicAddress(host)
  return host === 'localhost' || /\.(?:localhost|internal|local)$/.test(host)
}

/** A URL's hostname without the brackets of an IPv6 address. */
export function withoutBrackets(hostname: string): string {
  return hostname.replace(/^\[|\]$/g, '')
}
