import { domainToASCII } from 'node:url'

/** Host name and port for the policy: the name in lower-case ASCII, without a trailing dot. */
export interface Authority {
  host: string
  port: number
}

const LONGEST_NAME = 253
const LABEL = /^[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9_])?$/
/**
 * Labels that a URL parser reads as a number, hence as an IPv4 address: decimal, octal,
 * hexadecimal.
 */
const NUMBER = /^(?:\d+|0x[0-9a-f]*)$/

/**
 * The canonical spelling of a host name, or why it is none. Names from inside must be ASCII
 * already, in the form used on the wire. Addresses in any notation are not names.
 */
export function readHost(text: string): { host: string } | { problem: string } {
  const host = text.toLowerCase().replace(/\.$/, '')
  if (host === '' || host.length > LONGEST_NAME) return { problem: 'the host name is empty or too long' }
  const labels = host.split('.')
  if (!labels.every((label) => LABEL.test(label))) return { problem: 'the host is not a plain ASCII name' }
  if (NUMBER.test(labels.at(-1) ?? '')) return { problem: 'an address in numbers is not allowed; use a name' }
  if (domainToASCII(host.replaceAll('_', '-')) === '') return { problem: 'the host name is not valid' }
  return { host }
}

/**
 * `host` or `host:port`. Anything else (user names, brackets, escapes, a port of 0) is a problem.
 */
export function readAuthority(
  text: string,
  defaultPort: number | undefined,
): Authority | { problem: string } {
  const match = /^([^:@[\]/\\%?#]+)(?::([1-9]\d{0,4}))?$/.exec(text)
  if (!match) return { problem: 'the host and port are not of the form name:port' }
  const read = readHost(match[1] ?? '')
  if ('problem' in read) return read
  const port = match[2] === undefined ? defaultPort : Number(match[2])
  if (port === undefined) return { problem: 'the port is missing' }
  return port > 65_535 ? { problem: 'there is no such port' } : { host: read.host, port }
}
