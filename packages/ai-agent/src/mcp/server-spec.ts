/** A configured server with its references to the environment put in: what the rest of this folder works with. */
import type { McpServerConfig, McpServers, StdioServerConfig, HttpServerConfig } from './mcp-config.ts'
import { isHttp } from './mcp-config.ts'
import { type EnvironmentReader, type Template, needsUser, readTemplate } from './references.ts'

interface Common {
  name: string
  /** One for each user, because of whose secrets or sandbox it needs; else one for all. */
  perUser: boolean
  /** Tells its folder and its processes from those of every other server: its name, or that of its session before it. */
  place: string
}

export interface StdioSpec extends Common {
  kind: 'stdio'
  config: StdioServerConfig
  args: readonly Template[]
  env: Readonly<Record<string, Template>>
}

export interface HttpSpec extends Common {
  kind: 'http'
  config: HttpServerConfig
  headers: Readonly<Record<string, Template>>
  clientSecret?: Template
}

export type ServerSpec = StdioSpec | HttpSpec

/**
 * The enabled servers, sorted by name. What is wrong goes to `problems` with its place in the file; the values that must
 * not be logged go to `secrets`.
 */
export function readServerSpecs(
  servers: McpServers,
  from: EnvironmentReader,
  problems: string[],
  secrets: string[],
): ServerSpec[] {
  return Object.entries(servers)
    .filter(([, config]) => config.enabled)
    .toSorted(([a], [b]) => (a < b ? -1 : 1))
    .map(([name, config]) => {
      if (!isHttp(config) && config.where === 'sandbox' && /\$\{secret:/.test(JSON.stringify(config)))
        problems.push(
          `mcpServers.${name}: no secret may be in a sandbox, where every command can read it; use "where": "deployment"`,
        )
      const read = (text: string, at: string): Template =>
        readTemplate(text, `mcpServers.${name}.${at}`, from, problems, secrets)
      return specOf(name, config, read)
    })
}

/** One that a client brought for a session: nothing is put into its texts, and it is that session's alone. */
export function broughtSpec(name: string, config: McpServerConfig, place: string): ServerSpec {
  return { ...specOf(name, config, (text) => [text]), perUser: true, place }
}

function specOf(
  name: string,
  config: McpServerConfig,
  read: (text: string, at: string) => Template,
): ServerSpec {
  const each = (texts: Record<string, string>, at: string): Record<string, Template> =>
    Object.fromEntries(Object.entries(texts).map(([key, value]) => [key, read(value, `${at}.${key}`)]))
  if (isHttp(config)) {
    const headers = each(config.headers, 'headers')
    const { clientSecret } = config.auth ?? {}
    const perUser = config.auth !== undefined || Object.values(headers).some(needsUser)
    return {
      kind: 'http',
      name,
      place: name,
      config,
      headers,
      perUser,
      ...(clientSecret === undefined ? {} : { clientSecret: read(clientSecret, 'auth.clientSecret') }),
    }
  }
  const env = each(config.env, 'env')
  const args = config.args.map((arg, index) => read(arg, `args.${index}`))
  const personal = [...Object.values(env), ...args].some(needsUser)
  const perUser = config.where === 'sandbox' || personal
  return { kind: 'stdio', name, place: name, config, args, env, perUser }
}
