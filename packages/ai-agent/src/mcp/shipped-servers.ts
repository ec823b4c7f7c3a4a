/**
 * Sandlot's own MCP servers (`mcp/`), which need no entry in the configuration file: each is
 * enabled when its credentials are in the environment, and listed with what to set otherwise. An
 * entry of the same name replaces it.
 */
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import type { Environment } from '@sandlot/shared/config'
import { type McpServers, mcpServersSection } from './config.ts'

/** A server that is not enabled, and why, for users. */
export interface UnavailableServer {
  name: string
  why: string
}

type Readiness = { env: Record<string, string> } | { missing: string }

const DUFFEL = 'flights-mcp'
const GOOGLE = 'google-calendar-mcp'
const SHIPPED: readonly { name: string; readiness: (isSet: (name: string) => boolean) => Readiness }[] = [
  {
    name: DUFFEL,
    readiness: (isSet) =>
      isSet('DUFFEL_ACCESS_TOKEN')
        ? { env: references('DUFFEL_ACCESS_TOKEN') }
        : { missing: 'set DUFFEL_ACCESS_TOKEN to search flights' },
  },
  {
    name: GOOGLE,
    readiness(isSet) {
      const client = ['GOOGLE_CLIENT_ID', 'GOOGLE_CLIENT_SECRET']
      if (client.every(isSet)) {
        const token = 'GOOGLE_REFRESH_TOKEN'
        // Without a token of the deployment each user has their own, on the settings page.
        const tokenOf = isSet(token) ? references(token) : { [token]: `\${secret:${token}}` }
        return { env: { ...references(...client), ...tokenOf } }
      }
      if (isSet('GOOGLE_ACCESS_TOKEN') && !isSet('GOOGLE_REFRESH_TOKEN'))
        return { env: references('GOOGLE_ACCESS_TOKEN') }
      return {
        missing:
          'set GOOGLE_CLIENT_ID and GOOGLE_CLIENT_SECRET, with GOOGLE_REFRESH_TOKEN for one shared calendar, to read a calendar',
      }
    },
  },
]

/** Network settings of the servers; none of them is a secret. */
const NETWORK = [
  'HTTP_PROXY',
  'HTTPS_PROXY',
  'NO_PROXY',
  'http_proxy',
  'https_proxy',
  'no_proxy',
  'NODE_USE_ENV_PROXY',
  'NODE_EXTRA_CA_CERTS',
  'SSL_CERT_FILE',
  'SSL_CERT_DIR',
]

/** The ones that the file does not name itself. */
export function shippedServers(
  env: Environment,
  named: Readonly<Record<string, unknown>>,
): { servers: McpServers; unavailable: UnavailableServer[] } {
  const isPresent = (name: string): boolean => env[name] !== undefined && env[name] !== ''
  const isSet = (name: string): boolean => isPresent(name) || isPresent(`${name}_FILE`)
  const network = references(...NETWORK.filter(isPresent))
  const servers: Record<string, object> = {}
  const unavailable: UnavailableServer[] = []
  for (const { name, readiness } of SHIPPED.filter((server) => !(server.name in named))) {
    const ready = readiness(isSet)
    const program = programOf(name)
    if ('missing' in ready) unavailable.push({ name, why: ready.missing })
    else if (program === undefined) unavailable.push({ name, why: 'it has not been built' })
    else servers[name] = { ...program, env: { ...network, ...ready.env }, readOnly: 'as-announced' }
  }
  return { servers: mcpServersSection.parse(servers), unavailable }
}

/** Like this process: from the sources, or from a build, in a checkout or in the image. */
function programOf(name: string): { command: string; args: string[] } | undefined {
  const here = import.meta.dirname
  const fromSources = import.meta.filename.endsWith('.ts')
  const main = fromSources ? 'src/main.ts' : 'dist/main.js'
  const program = [join(here, '../../../..'), join(here, '../../..')]
    .map((root) => join(root, 'mcp', name, main))
    .find((path) => existsSync(path))
  if (program === undefined) return undefined
  return {
    command: process.execPath,
    args: [...(fromSources ? ['--conditions=sandlot-source'] : []), program],
  }
}

function references(...names: string[]): Record<string, string> {
  return Object.fromEntries(names.map((name) => [name, `\${${name}}`]))
}
