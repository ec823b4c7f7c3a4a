/**
 * `${NAME}` in a setting stands for the agent's environment variable of that name (or the file that `NAME_FILE` names),
 * read when the agent starts; `${secret:NAME}` for a secret of the user whom the server works for, read when it starts.
 * `$${` is a plain `${`. No value of either ever stands in a log.
 */
import type { Environment } from '@sandlot/shared/config'
import { messageOf } from '@sandlot/shared/errors'

const REFERENCE = /\$\$\{|\$\{(secret:)?([^}]*)\}/g
const NAME = /^[A-Za-z_][A-Za-z0-9_.-]{0,127}$/

/** Reads a user's secret; undefined when there is none of that name. */
export type SecretOf = (userId: string, name: string) => Promise<string | undefined>

/** Text in which only users' secrets are still to be put in. */
export type Template = readonly (string | { secret: string })[]

export interface EnvironmentReader {
  env: Environment
  readFile: (path: string) => string
}

/**
 * Put in what the environment has. What is wrong goes to `problems`, each a sentence that begins with `place`; what was
 * put in goes to `secrets`.
 */
export function readTemplate(
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

/** The same for each of them; those that need a secret that is not there are left out. */
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
