import { type Authority, readAuthority } from './host.ts'
import { EgressRefused } from './refusal.ts'

/** Longest head of a request, in bytes, with the empty line. */
export const HEAD_BYTES = 64 * 1024
const MOST_HEADERS = 200

/**
 * In capitals: methods are case-sensitive, but servers and HTTP clients turn `connect` into
 * CONNECT.
 */
const METHOD = /^[!#$%&'*+.^_`|~0-9A-Z-]{1,32}$/
const TOKEN = /^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/
/** A field value: tabs, spaces, visible characters, and bytes above ASCII. */
const VALUE = /^[\t\x20-\x7e\x80-\xff]*$/
const PATH = /^[\x21\x22\x24-\x7e]*$/

interface HeaderField {
  name: string
  value: string
}

export type BodyFraming = { kind: 'none' } | { kind: 'length'; bytes: number } | { kind: 'chunked' }

/** One request, parsed unambiguously. */
export interface ProxyRequest {
  /** `connect`: a tunnel; `forward`: one HTTP request that the controller sends on. */
  kind: 'connect' | 'forward'
  method: string
  authority: Authority
  /** In origin form, beginning with `/`; empty for a tunnel. */
  path: string
  minor: 0 | 1
  /** Headers to forward: without Host, framing, and those addressed to a proxy. */
  headers: readonly HeaderField[]
  body: BodyFraming
  expectsContinue: boolean
  /** The user name sent to the proxy, if any. */
  proxyUser: string | undefined
}

const ECHOING: ReadonlySet<string> = new Set(['TRACE', 'TRACK'])

/** Headers of one connection or of framing: only the controller sends them to a server. */
export const HOP_BY_HOP: ReadonlySet<string> = new Set([
  'connection',
  'keep-alive',
  'proxy-authenticate',
  'proxy-authorization',
  'proxy-connection',
  'te',
  'trailer',
  'transfer-encoding',
  'upgrade',
  'host',
  'content-length',
  'expect',
])

/**
 * `head`: with its empty line, as `latin1`. `tunnelled`: inside a tunnel to port 80, where requests
 * are in origin form and go to that authority only. Throws `EgressRefused` `bad_request` for
 * everything that two parsers could read differently.
 */
export function readRequest(head: string, tunnelled?: Authority): ProxyRequest {
  const lines = head.slice(0, -4).split('\r\n')
  const [method = '', target = '', version = '', ...more] = (lines[0] ?? '').split(' ')
  const minor = /^HTTP\/1\.([01])$/.exec(version)?.[1]
  if (more.length > 0 || minor === undefined) bad('the first line is not "METHOD target HTTP/1.1"')
  if (!METHOD.test(method)) bad('the method is not a word in capitals')
  // The answer would contain the headers that the controller adds.
  if (ECHOING.has(method)) bad(`${method} is not passed on`)
  const fields = readFields(lines.slice(1))
  const { authority, path } = readTarget(method, target, tunnelled)
  checkHost(fields, authority, minor === '1')
  const connect = method === 'CONNECT'
  const body = readFraming(fields, minor === '1')
  if (connect && body.kind !== 'none') bad('CONNECT has no body')
  return {
    kind: connect ? 'connect' : 'forward',
    method,
    authority,
    path,
    minor: minor === '1' ? 1 : 0,
    headers: endToEnd(fields),
    body,
    expectsContinue: one(fields, 'expect')?.toLowerCase() === '100-continue',
    proxyUser: readProxyUser(fields),
  }
}

function bad(what: string): never {
  throw new EgressRefused('bad_request', `this request cannot be sent on: ${what}.`)
}

function readFields(lines: readonly string[]): HeaderField[] {
  if (lines.length > MOST_HEADERS) bad('it has too many headers')
  return lines.map((line) => {
    const colon = line.indexOf(':')
    // A name with a space before the colon, or a line that begins with one (a folded header), is no
    // token either.
    const name = line.slice(0, Math.max(colon, 0))
    const value = line.slice(colon + 1)
    if (!TOKEN.test(name)) bad('a header is not "Name: value"')
    if (!VALUE.test(value)) bad('a header has control characters')
    return { name, value: value.replace(/^[\t ]+|[\t ]+$/g, '') }
  })
}

function all(fields: readonly HeaderField[], name: string): string[] {
  return fields.filter((field) => field.name.toLowerCase() === name).map((field) => field.value)
}

function one(fields: readonly HeaderField[], name: string): string | undefined {
  const values = all(fields, name)
  if (values.length > 1) bad(`it has more than one ${name} header`)
  return values[0]
}

function readTarget(
  method: string,
  target: string,
  tunnelled: Authority | undefined,
): { authority: Authority; path: string } {
  if (method === 'CONNECT') {
    if (tunnelled) bad('there is no tunnel inside a tunnel')
    return { authority: authorityOf(target, undefined), path: '' }
  }
  if (tunnelled) {
    if (!target.startsWith('/') || !PATH.test(target)) bad('the path is not one')
    return { authority: tunnelled, path: target }
  }
  if (/^https:/i.test(target)) bad('for https a proxy is asked with CONNECT')
  const match = /^http:\/\/([^/?]*)(.*)$/i.exec(target)
  if (!match) bad('the address is not of the form http://host/path; this is a proxy, not a server')
  const rest = match[2] ?? ''
  if (!PATH.test(rest)) bad('the path is not one')
  return { authority: authorityOf(match[1] ?? '', 80), path: rest.startsWith('/') ? rest : `/${rest}` }
}

function authorityOf(text: string, defaultPort: number | undefined): Authority {
  const read = readAuthority(text, defaultPort)
  return 'problem' in read ? bad(read.problem) : read
}

/** Host must equal the target: a reader of either must reach the same server. */
function checkHost(fields: readonly HeaderField[], authority: Authority, needed: boolean): void {
  const host = one(fields, 'host')
  if (host === undefined) {
    if (needed) bad('the Host header is missing')
    return
  }
  // Some clients leave the port out of the Host of a CONNECT.
  const bare = !host.includes(':')
  const said = authorityOf(host, bare && authority.port === 443 ? 443 : 80)
  const withoutPort = bare && !USUAL_PORTS.has(authority.port)
  if (said.host !== authority.host || (said.port !== authority.port && !withoutPort))
    bad('the Host header and the address name different servers')
}

const USUAL_PORTS: ReadonlySet<number> = new Set([80, 443])

function readFraming(fields: readonly HeaderField[], chunkedIsKnown: boolean): BodyFraming {
  const length = one(fields, 'content-length')
  const coding = one(fields, 'transfer-encoding')
  if (length !== undefined && coding !== undefined) bad('it has both a length and a transfer encoding')
  if (coding !== undefined) {
    if (coding.toLowerCase() !== 'chunked' || !chunkedIsKnown)
      bad('only the transfer encoding "chunked" of HTTP/1.1 is read')
    return { kind: 'chunked' }
  }
  if (length === undefined) return { kind: 'none' }
  if (!/^(?:0|[1-9]\d{0,14})$/.test(length)) bad('the content length is not a number')
  return { kind: 'length', bytes: Number(length) }
}

function endToEnd(fields: readonly HeaderField[]): HeaderField[] {
  const named = all(fields, 'connection').flatMap((value) =>
    value.split(',').map((word) => word.trim().toLowerCase()),
  )
  return fields.filter(({ name }) => {
    const lower = name.toLowerCase()
    return !HOP_BY_HOP.has(lower) && !named.includes(lower)
  })
}

/** The user name of Basic credentials; other credentials are ignored. */
function readProxyUser(fields: readonly HeaderField[]): string | undefined {
  const match = /^basic +([A-Za-z0-9+/]+=*)$/i.exec(all(fields, 'proxy-authorization')[0] ?? '')
  return match?.[1] === undefined
    ? undefined
    : Buffer.from(match[1], 'base64').toString('latin1').split(':')[0]
}
