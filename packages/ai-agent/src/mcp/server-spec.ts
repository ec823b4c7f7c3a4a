/** A configured server with its references to the environment put in: what the rest of this folder works with. */
import type { McpServerConfig, McpServers, StdioServerConfig, HttpServerConfig } from './config.ts'
import { isHttp } from './config.ts'
import { type EnvironmentReader, type Template, needsUser, readTemplate } from './references.ts'

interface Common {
  name: string
  /** One for each user, because of whose secrets or sandbox it needs; else one for all. */
  perUser: boolean
  /** Tells its folder and its processes from those of every other server: its name, or that of its session before it. */
  place: string
  /** In place of its name in the rules that allow its tools. */
  ruledAs?: string
  /** What its user can do where it wants a sign-in and there is no link to show. Absent: that is nobody's to say here. */
  signIn?: string
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
  /** Of the deployment: its secret or key for signing in. */
  clientSecret?: string
  privateKey?: string
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
      if (isHttp(config) && /\$\{secret:/.test(JSON.stringify(config.auth ?? {})))
        problems.push(
          `mcpServers.${name}: auth is the deployment's, so no secret of a user may stand in it; use \${NAME}`,
        )
      const read = (text: string, at: string): Template =>
        readTemplate(text, `mcpServers.${name}.${at}`, from, problems, secrets)
      const spec = specOf(name, config, read)
      // Also where it was written into the file itself.
      if (spec.kind === 'http')
        for (const own of [spec.clientSecret, spec.privateKey])
          if (own !== undefined && own !== '' && !secrets.includes(own)) secrets.push(own)
      return spec
    })
}

/** Where it offers no sign-in by a link, or has got a key that it does not take. */
const SIGN_IN_OF_BROUGHT =
  'It has no sign-in by a link here: they have to give it a token in its headers where their client names it (Authorization), or whoever runs this Sandlot names it in its configuration with auth.'

/** One that a client brought for a session: nothing is put into its texts, and it is that session's alone. */
export function broughtSpec(
  name: string,
  config: McpServerConfig,
  own: { place: string; ruledAs: string },
): ServerSpec {
  return { ...specOf(name, config, (text) => [text]), perUser: true, signIn: SIGN_IN_OF_BROUGHT, ...own }
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
    const { auth } = config
    const perUser = auth?.type === 'oauth' || Object.values(headers).some(needsUser)
    return {
      kind: 'http',
      name,
      place: name,
      config,
      headers,
      perUser,
      ...ownSecrets(auth, read),
    }
  }
  const env = each(config.env, 'env')
  const args = config.args.map((arg, index) => read(arg, `args.${index}`))
  const personal = [...Object.values(env), ...args].some(needsUser)
  const perUser = config.where === 'sandbox' || personal
  return { kind: 'stdio', name, place: name, config, args, env, perUser }
}

/** What the deployment signs in with is no user's: a reference to a user's secret is a problem, told by `readServerSpecs`. */
function ownSecrets(
  auth: HttpServerConfig['auth'],
  read: (text: string, at: string) => Template,
): { clientSecret?: string; privateKey?: string } {
  const text = (value: string, at: string): string =>
    read(value, at)
      .filter((part) => typeof part === 'string')
      .join('')
  const key = auth?.type === 'client-credentials' ? auth.privateKey : undefined
  return {
    ...(auth?.clientSecret === undefined
      ? {}
      : { clientSecret: text(auth.clientSecret, 'auth.clientSecret') }),
    privateKey: key === undefined ? undefined : text(key, 'auth.privateKey'),
  }
}
