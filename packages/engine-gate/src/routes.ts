/**
 * Table of all allowed requests. Everything else does not exist behind the gate: exec, archive,
 * commit, export, build, images, networks, swarm, plugins, checkpoints, sessions and future
 * additions.
 */
import { forbidden } from './refusal.ts'

export type Operation =
  | 'ping'
  | 'version'
  | 'info'
  | 'create'
  | 'list'
  | 'inspect'
  | 'start'
  | 'stop'
  | 'kill'
  | 'pause'
  | 'unpause'
  | 'rename'
  | 'wait'
  | 'resize'
  | 'attach'
  | 'remove'
  | 'volume-create'
  | 'volume-list'
  | 'volume-inspect'
  | 'volume-remove'
  | 'image-inspect'
  | 'events'

export interface Route {
  operation: Operation
  /** `/v1.41`, or empty where none is needed. */
  version: string
  /** Container id or name, volume name, or image name; empty where the operation has none. */
  target: string
  /** Only the operation's known parameters, each at most once, each checked. */
  query: ReadonlyMap<string, string>
}

interface Row {
  method: 'GET' | 'POST' | 'DELETE' | 'HEAD'
  path: RegExp
  query?: Record<string, RegExp>
  /** Allowed without a version in the path, before the version is known. */
  bare?: true
}

const CONTAINER = String.raw`/containers/([0-9a-f]{64})`
const YES_OR_NO = /^(0|1|true|false)$/
const NO = /^(0|false)$/
const JSON_TEXT = /^\{[^]{0,4094}\}$/
const TIME = /^\d{1,12}(\.\d{1,9})?$/

const ROWS: Record<Operation, Row> = {
  ping: { method: 'GET', path: /^\/_ping()$/, bare: true },
  version: { method: 'GET', path: /^\/version()$/, bare: true },
  info: { method: 'GET', path: /^\/info()$/ },
  create: { method: 'POST', path: /^\/containers\/create()$/, query: { name: /^[a-z0-9-]{1,120}$/ } },
  list: {
    method: 'GET',
    path: /^\/containers\/json()$/,
    query: { all: YES_OR_NO, filters: JSON_TEXT, limit: /^\d{1,6}$/, size: NO },
  },
  inspect: {
    method: 'GET',
    // By name too. A foreign name is not passed to the engine: there is no such container.
    path: /^\/containers\/([A-Za-z0-9][A-Za-z0-9_.-]{0,127})\/json$/,
    query: { size: NO },
  },
  start: act('start'),
  stop: act('stop', { t: /^\d{1,3}$/ }),
  kill: act('kill', { signal: /^(SIG)?(TERM|KILL|INT|HUP)$/ }),
  pause: act('pause'),
  unpause: act('unpause'),
  rename: act('rename', { name: /^[a-z0-9-]{1,120}$/ }),
  wait: act('wait', { condition: /^(not-running|next-exit|removed)$/ }),
  resize: act('resize', { h: /^\d{1,4}$/, w: /^\d{1,4}$/ }),
  attach: act('attach', { stream: YES_OR_NO, stdin: YES_OR_NO, stdout: YES_OR_NO, stderr: YES_OR_NO }),
  remove: {
    method: 'DELETE',
    path: new RegExp(`^${CONTAINER}$`),
    query: { force: YES_OR_NO, v: NO, link: NO },
  },
  'volume-create': {
    method: 'POST',
    path: /^\/volumes\/create()$/,
    // dockerode repeats the body as a query, which the engine does not read; it is dropped.
    query: { Name: /^[a-z0-9-]{1,120}$/, Driver: /^local$/, DriverOpts: JSON_TEXT, Labels: JSON_TEXT },
  },
  'volume-list': { method: 'GET', path: /^\/volumes()$/, query: { filters: JSON_TEXT } },
  'volume-inspect': { method: 'GET', path: /^\/volumes\/([A-Za-z0-9][A-Za-z0-9_.-]{0,127})$/ },
  'volume-remove': { method: 'DELETE', path: /^\/volumes\/(sbx-[a-z0-9-]{1,116})$/, query: { force: NO } },
  // `..` and `//` are not part of an image's name, which is also compared with the configured one.
  'image-inspect': { method: 'GET', path: /^\/images\/([A-Za-z0-9][A-Za-z0-9_.:/@-]{0,255})\/json$/ },
  events: {
    method: 'GET',
    path: /^\/events()$/,
    query: { filters: JSON_TEXT, since: TIME, until: TIME },
  },
}

function act(verb: string, query: Record<string, RegExp> = {}): Row {
  return { method: 'POST', path: new RegExp(`^${CONTAINER}/${verb}$`), query }
}

/** Before API 1.40 a start may carry a container's configuration, among other things. */
const OLDEST_MINOR = 40

/**
 * Parses a request line. The path is taken literally: nothing in it is decoded, resolved or
 * corrected. @throws Refusal 403 for everything that is not in the table.
 */
export function routeOf(method: string, url: string): Route {
  const [, path = '', search] = /^([^?#]*)(?:\?([^#]*))?$/.exec(url) ?? []
  const [, version = '', minor, rest = ''] = /^(\/v1\.([1-9]\d{1,2}))?(\/.*)$/.exec(path) ?? []
  if (minor !== undefined && Number(minor) < OLDEST_MINOR)
    throw forbidden(`API versions before 1.${OLDEST_MINOR} are not passed on`)
  for (const [operation, row] of Object.entries(ROWS)) {
    const target = row.path.exec(rest)?.[1]
    if (target === undefined || !methodFits(method, row)) continue
    if (version === '' && row.bare !== true) throw forbidden('the path has no API version')
    if (/\.\.|\/\//.test(target)) break
    return { operation: operation as Operation, version, target, query: queryOf(search, row.query ?? {}) }
  }
  throw forbidden(`${method} ${shown(path)} is not allowed`)
}

function methodFits(method: string, row: Row): boolean {
  return method === row.method || (method === 'HEAD' && row.bare === true)
}

function queryOf(search: string | undefined, known: Record<string, RegExp>): Map<string, string> {
  const query = new Map<string, string>()
  if (search === undefined || search === '') return query
  for (const pair of search.split('&')) {
    const [, name = '', written = ''] = /^([A-Za-z]+)=(.*)$/.exec(pair) ?? []
    const pattern = Object.hasOwn(known, name) ? known[name] : undefined
    const value = decoded(written)
    if (pattern === undefined || value === undefined || !pattern.test(value))
      throw forbidden(`the parameter ${shown(pair)} is not allowed`)
    if (query.has(name)) throw forbidden(`the parameter ${name} is there twice`)
    query.set(name, value)
  }
  return query
}

function decoded(text: string): string | undefined {
  try {
    // A plus is a space to the engine and a plus to us: neither is needed.
    return text.includes('+') ? undefined : decodeURIComponent(text)
  } catch {
    return undefined
  }
}

/** Short and printable, for messages. */
function shown(text: string): string {
  return text.replaceAll(/[^\x21-\x7e]/g, '?').slice(0, 120)
}
