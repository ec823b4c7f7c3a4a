/** Addresses that lead to this machine, to the networks it stands in, or nowhere: not where a stranger may send us. */
import { BlockList, isIP } from 'node:net'

// Two lists: in one, Node takes every IPv4 address for the IPv6 address that carries it.
const inside4 = new BlockList()
const inside6 = new BlockList()
for (const [net, bits] of [
  ['0.0.0.0', 8],
  ['10.0.0.0', 8],
  ['100.64.0.0', 10],
  ['127.0.0.0', 8],
  ['169.254.0.0', 16],
  ['172.16.0.0', 12],
  ['192.0.0.0', 24],
  ['192.168.0.0', 16],
  ['198.18.0.0', 15],
  ['224.0.0.0', 3],
] as const)
  inside4.addSubnet(net, bits, 'ipv4')
for (const [net, bits] of [
  ['::', 96],
  ['::ffff:0:0', 96],
  // Both carry an IPv4 address, which a gateway would take out again.
  ['64:ff9b::', 32],
  ['2002::', 16],
  ['fc00::', 7],
  ['fe80::', 9],
  ['ff00::', 8],
] as const)
  inside6.addSubnet(net, bits, 'ipv6')

/** `address`: an IP address, without brackets. */
export function isInsideAddress(address: string): boolean {
  return isIP(address) === 6 ? inside6.check(address, 'ipv6') : inside4.check(address, 'ipv4')
}

/** Whether a URL's hostname is this machine, by its looks alone. */
export function isThisMachine(hostname: string): boolean {
  return hostname === 'localhost' || hostname === '[::1]' || /^127\.\d+\.\d+\.\d+$/.test(hostname)
}

/** Of a URL's hostname, by its looks alone: a name that resolves to an address inside is not seen here. */
export function isInsideHost(hostname: string): boolean {
  const host = hostname.replace(/^\[|\]$/g, '').replace(/\.$/, '')
  if (isIP(host) !== 0) return isInsideAddress(host)
  return host === 'localhost' || /\.(?:localhost|internal|local)$/.test(host)
}
