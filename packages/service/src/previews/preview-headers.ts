/** The headers of a request to a preview, and of its answer: what goes in and what comes out. */
import { type IncomingHttpHeaders, validateHeaderName, validateHeaderValue } from 'node:http'

/** Between two neighbours only. */
const HOP_BY_HOP: ReadonlySet<string> = new Set([
  'connection',
  'keep-alive',
  'proxy-authenticate',
  'proxy-authorization',
  'proxy-connection',
  'te',
  'trailer',
  'transfer-encoding',
  'upgrade',
])
/** Headers that would act outside of the preview's own origin, or that identify us. */
const NOT_FOR_BROWSERS: ReadonlySet<string> = new Set([
  'alt-svc',
  'clear-site-data',
  'nel',
  'public-key-pins',
  'report-to',
  'set-cookie',
  'set-cookie2',
  'strict-transport-security',
])
export const PREVIEW_COOKIE = 'sandlot_preview'
/** Our own cookies, with and without the prefixes that browsers know. */
const OUR_COOKIE = /^\s*(__Host-|__Secure-)?sandlot[._-]/i

export type Header = [name: string, value: string]

/** The preview's outer address, and the program's inside. */
export interface Ends {
  outside: string
  inside: string
}

/**
 * Headers of the request, for the program: it gets the name under which it listens, and no cookie
 * of ours.
 */
export function headersInside(headers: IncomingHttpHeaders, { outside, inside }: Ends): Header[] {
  const named = namedByConnection(headers.connection)
  const passed = Object.entries(headers).flatMap(([name, value]): Header[] => {
    if (value === undefined || HOP_BY_HOP.has(name) || named.has(name)) return []
    if (name === 'host' || name === 'cookie' || name.startsWith('x-forwarded-') || name === 'forwarded')
      return []
    if (name === 'origin' && value === outside) return [[name, inside]]
    return [value].flat().map((one): Header => [name, one])
  })
  const cookies = (headers.cookie ?? '').split(';').filter((pair) => pair !== '' && !OUR_COOKIE.test(pair))
  const { host, protocol } = new URL(outside)
  return [
    ['host', new URL(inside).host],
    ...passed,
    ...(cookies.length === 0 ? [] : [['cookie', cookies.join(';').trim()] satisfies Header]),
    ['x-forwarded-host', host],
    ['x-forwarded-proto', protocol.slice(0, -1)],
  ]
}

/** Headers of the answer, for the browser: `raw` has names and values in turn. */
export function headersOutside(raw: readonly string[], { outside, inside }: Ends): Header[] {
  const pairs: Header[] = []
  for (let at = 0; at + 1 < raw.length; at += 2) pairs.push([raw[at] ?? '', raw[at + 1] ?? ''])
  const connection = pairs.filter(([name]) => name.toLowerCase() === 'connection')
  const named = namedByConnection(connection.map(([, value]) => value).join(','))
  return pairs.filter(isSendable).flatMap(([name, value]): Header[] => {
    const known = name.toLowerCase()
    if (known === 'set-cookie') return cookieOutside(value)
    if (HOP_BY_HOP.has(known) || NOT_FOR_BROWSERS.has(known) || named.has(known)) return []
    // The program names itself by what it was asked as.
    if (known === 'location' && (value === inside || value.startsWith(`${inside}/`)))
      return [[name, outside + value.slice(inside.length)]]
    if (known === 'access-control-allow-origin' && value === inside) return [[name, outside]]
    return [[name, value]]
  })
}

/** Node reads some headers that it refuses to write. */
export function isSendable([name, value]: Header): boolean {
  try {
    validateHeaderName(name)
    validateHeaderValue(name, value)
    return true
  } catch {
    return false
  }
}

/** Only for the preview's own host, and none that is named as ours. */
function cookieOutside(cookie: string): Header[] {
  if (OUR_COOKIE.test(cookie)) return []
  const [pair = '', ...attributes] = cookie.split(';')
  const others = attributes.filter((attribute) => !/^\s*domain\s*(=|$)/i.test(attribute))
  return [['set-cookie', [pair, ...others].join(';')]]
}

function namedByConnection(connection: string | undefined): ReadonlySet<string> {
  return new Set((connection ?? '').split(',').map((name) => name.trim().toLowerCase()))
}

/** The value of the preview's own cookie. */
export function keyIn(cookie: string | undefined): string | undefined {
  for (const pair of (cookie ?? '').split(';')) {
    const [name, value] = pair.split('=', 2)
    if (name?.trim() === PREVIEW_COOKIE) return value?.trim()
  }
  return undefined
}
