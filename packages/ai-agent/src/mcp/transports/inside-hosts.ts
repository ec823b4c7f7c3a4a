/** Hosts that lead to this machine, to the networks it stands in, or nowhere: not where a stranger may send us. */
import { isIP } from 'node:net'
import { isPublicAddress } from '@sandlot/sandbox/egress/addresses'

/** Whether a URL's hostname is this machine, by its looks alone. */
export function isThisMachine(hostname: string): boolean {
  return hostname === 'localhost' || hostname === '[::1]' || /^127\.\d+\.\d+\.\d+$/.test(hostname)
}

/** Of a URL's hostname, by its looks alone: a name that resolves to an address inside is not seen here. */
export function isInsideHost(hostname: string): boolean {
  const host = hostname.replace(/^\[|\]$/g, '').replace(/\.$/, '')
  if (isIP(host) !== 0) return !isPublicAddress(host)
  return host === 'localhost' || /\.(?:localhost|internal|local)$/.test(host)
}
