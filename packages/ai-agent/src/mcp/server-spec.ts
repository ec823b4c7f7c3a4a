/** A configured server with its `${…}` references resolved. */
import type { Environment } from '@sandlot/shared/config'
import { messageOf } from '@sandlot/shared/base/errors'
import {
  type HttpServerConfig,
  isHttp,
  type McpServerConfig,
  type McpServers,
  type StdioServerConfig,
} from './config.ts'

interface Common {
  name: string
  /**
   * One instance for each user, because it needs their secrets or sandbox; otherwise one for all
   * users.
   */
  perUser: boolean
  /**
   * Unique key of its folder and its processes: its name, with its session's id before it for a
   * client's server.
   */
  place: string
  /** Replaces its name in the rules that allow its tools. */
  ruleId?: string
  /** Instructions for its user when it needs a sign-in and there is no link. */
  signInHint?: string
  /** Facts of a server that was added on the page. */
  added?: AddedSpec
}

interface AddedSpec {
  /**
   * The owner of a personal server, at addresses that are not trusted; undefined: the deployment's.
   */
  ownerId: string | undefined
  /** Key of its sign-ins' records: another server may get its name. */
  recordsAs: string
  /** The current choice of its tools. */
  chosen: () => ChosenTools
  /** Values of its headers or variables now, in place of those of `config`. */
  values: () => Promise<Record<string, Template>>
}

interface ChosenTools {
  /** Not offered, by the server's own names. */
  off: readonly string[]
  readOnly: 'as-announced' | readonly string[]
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
  /** The deployment's own secret or key for signing in. */
  clientSecret?: string
  privateKey?: string
}

export type ServerSpec = StdioSpec | HttpSpec

/**
 * The enabled servers, sorted by name. Adds problems with their place in the file to `problems`,
 * and values that must not be logged to `secrets`.
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
      // Also a secret that the file contains itself.
      if (spec.kind === 'http')
        for (const own of [spec.clientSecret, spec.privateKey])
          if (own !== undefined && own !== '' && !secrets.includes(own)) secrets.push(own)
      return spec
    })
}

/** For a server without a sign-in link, or that refused its token. */
const CLIENT_SERVER_SIGN_IN_HINT =
  'It has no sign-in by a link here: they have to give it a token in its headers where their client names it (Authorization), or the operator of this Sandlot names it in its configuration with auth.'

/** The server of a client for one session; references in its texts are not resolved. */
export function clientServerSpec(
  name: string,
  config: McpServerConfig,
  own: { place: string; ruleId: string },
): ServerSpec {
  return {
    ...specOf(name, config, (text) => [text]),
    perUser: true,
    signInHint: CLIENT_SERVER_SIGN_IN_HINT,
    ...own,
  }
}

/**
 * The server that was added on the page; references in its texts are not resolved, those in its
 * values are, of which `perUser` says whether there are some.
 */
export function addedServerSpec(
  name: string,
  config: McpServerConfig,
  {
    ruleId,
    place,
    perUser,
    ...added
  }: AddedSpec & { place: string; ruleId: string | undefined; perUser: boolean },
): ServerSpec {
  const spec = specOf(name, config, (text) => [text])
  return {
    ...spec,
    perUser: spec.perUser || perUser || added.ownerId !== undefined,
    place,
    ruleId,
    added,
  }
}

/**
 * A value that was typed on the page: a user's secret is the only reference there is. A sentence
 * where it has another one.
 */
export function valueTemplate(text: string): Template | string {
  const problems: string[] = []
  const none = { env: {}, readFile: () => '' }
  const template = readTemplate(text, 'value', none, problems, [])
  if (problems.length === 0) return template
  return 'A ${…} in a value names a secret of each person, as ${secret:NAME}. Variables of the agent are for the configuration file; a plain ${ is written $${.'
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

/**
 * The deployment's credentials. `readServerSpecs` reports a reference to a user's secret in them.
 */
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

const REFERENCE = /\$\$\{|\$\{(secret:)?([^}]*)\}/g
const NAME = /^[A-Za-z_][A-Za-z0-9_.-]{0,127}$/

/** Reads a user's secret; undefined when there is none of that name. */
export type SecretOf = (userId: string, name: string) => Promise<string | undefined>

/** Text in which only users' secrets are unresolved. */
export type Template = readonly (string | { secret: string })[]

interface EnvironmentReader {
  env: Environment
  readFile: (path: string) => string
}

/**
 * Resolves the references to the environment. Adds problems to `problems`, each a sentence that
 * begins with `place`, and values to `secrets`.
 */
function readTemplate(
  text: string,
  place: string,
  from: EnvironmentReader,
  problems: string[],
  secrets: string[],
): Template {
  const parts: (string | { secret: string })[] = []
  let end = 0
  for (const match of text.matchAll(REFERENCE)) {
    parts.push(text.slice(end, match.index))
    end = match.index + match[0].length
    const [whole, secret, name = ''] = match
    if (whole === '$${') parts.push('${')
    else if (!NAME.test(name))
      problems.push(
        `${place}: ${whole} names nothing; write \${NAME}, \${secret:NAME}, or $\${ for a plain \${`,
      )
    else if (secret !== undefined) parts.push({ secret: name })
    else parts.push(fromEnvironment(name, place, from, problems, secrets))
  }
  return [...parts, text.slice(end)].filter((part) => part !== '')
}

function fromEnvironment(
  name: string,
  place: string,
  { env, readFile }: EnvironmentReader,
  problems: string[],
  secrets: string[],
): string {
  const file = env[`${name}_FILE`]
  let value = env[name]
  if ((value === undefined || value === '') && file !== undefined && file !== '') {
    try {
      value = readFile(file).trimEnd()
    } catch (error) {
      problems.push(`${place}: cannot read the file that ${name}_FILE names (${messageOf(error)})`)
      return ''
    }
  }
  if (value === undefined || value === '') {
    problems.push(`${place}: \${${name}} is not set; set ${name} (or ${name}_FILE) for the agent`)
    return ''
  }
  secrets.push(value)
  return value
}

export function needsUser(template: Template): boolean {
  return template.some((part) => typeof part !== 'string')
}

/** Undefined when the user has not stored a secret that it needs. */
export async function fillTemplate(
  template: Template,
  secret: (name: string) => Promise<string | undefined>,
): Promise<string | undefined> {
  const parts = await Promise.all(
    template.map(async (part) => (typeof part === 'string' ? part : secret(part.secret))),
  )
  return parts.includes(undefined) ? undefined : parts.join('')
}

/** Fills each of them; leaves out those with a missing secret. */
export async function fillTemplates(
  templates: Readonly<Record<string, Template>>,
  secret: (name: string) => Promise<string | undefined>,
): Promise<Record<string, string>> {
  const filled = await Promise.all(
    Object.entries(templates).map(
      async ([name, template]) => [name, await fillTemplate(template, secret)] as const,
    ),
  )
  return Object.fromEntries(filled.filter((one): one is [string, string] => one[1] !== undefined))
}
