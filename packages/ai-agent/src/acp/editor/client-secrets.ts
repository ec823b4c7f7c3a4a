/**
 * Which of the values that a client gives its MCP servers are secrets: by what they are called, and
 * by how they look.
 */
import type { McpServer } from '@agentclientprotocol/sdk'

/** Shorter values are in too many ordinary words. */
const MIN_CHARS = 6
/**
 * A value with such a name is a secret. Other values are as often a folder or a word, which results
 * may name.
 */
const SECRET_NAME = /key|token|secret|passw|pwd|auth|cred|cookie|signature|dsn|database_url|connection/i

/** Each as it is written, and in other spellings where the server may well repeat it so. */
export function secretsOf(server: McpServer): string[] {
  const found =
    'url' in server
      ? [...server.headers.flatMap(ofHeader), ...ofUrl(server.url)]
      : [...server.env.flatMap(ofVariable), ...ofArguments(server.args)]
  return found.filter((value) => value.length >= MIN_CHARS)
}

interface Named {
  name: string
  value: string
}

/**
 * Often a word like `Bearer` and the secret, or names with values: each is hidden, together and
 * alone.
 */
function ofHeader({ name, value }: Named): string[] {
  // The first word of an `Authorization` is its kind.
  const said = /authorization/i.test(name) ? value.replace(/^[A-Za-z][\w-]*\s+(?=\S)/, '') : value
  const words = said.split(/[\s;,]+/).flatMap((word) => [word, word.slice(word.indexOf('=') + 1)])
  return SECRET_NAME.test(name) ? [value, ...words] : words.filter(isLikeKey)
}

function ofVariable({ name, value }: Named): string[] {
  return SECRET_NAME.test(name) || isLikeSecret(value) ? [value, ...ofUrl(value)] : ofUrl(value)
}

/**
 * `--api-key value`, `--api-key=value`, `Authorization: Bearer value`, addresses with a password,
 * and what looks like a key.
 */
function ofArguments(args: readonly string[]): string[] {
  return args.flatMap((arg, index) => {
    const before = args[index - 1] ?? ''
    const { name, value } = /^(?<name>[\w.-]+)=(?<value>.*)$/s.exec(arg)?.groups ?? {
      name: before,
      value: arg,
    }
    const isNamed =
      SECRET_NAME.test(name ?? '') && (name !== before || (before.startsWith('-') && !arg.startsWith('-')))
    const own = value ?? arg
    const header = /^(?<name>[\w-]+):\s*(?!\/\/)(?<value>\S.*)$/s.exec(own)?.groups
    const inside = [
      ...ofUrl(own),
      ...(header === undefined ? [] : ofHeader({ name: header['name'] ?? '', value: header['value'] ?? '' })),
    ]
    return isNamed || isLikeKey(own) ? [own, ...inside] : inside
  })
}

/**
 * Its password, and of its path and its parameters what is called or looks like a secret: as it is
 * written, and what is meant.
 */
function ofUrl(text: string): string[] {
  if (!URL.canParse(text)) return []
  const { password, pathname, search } = new URL(text)
  const parameters = search
    .slice(1)
    .split('&')
    .map((pair) => [pair.slice(0, pair.indexOf('=')), pair.slice(pair.indexOf('=') + 1)] as const)
    .filter(([name, value]) => SECRET_NAME.test(name) || isLikeKey(value))
    .map(([, value]) => value)
  return [password, ...pathname.split('/').filter(isLikeKey), ...parameters].flatMap((value) => [
    value,
    unescaped(value),
  ])
}

function unescaped(value: string): string {
  return new URLSearchParams(`v=${value.replaceAll('+', '%2B')}`).get('v') ?? value
}

function isLikeSecret(value: string): boolean {
  return /^[\w+/=.~-]{20,}$/.test(value) && /\d/.test(value) && !value.startsWith('/')
}

/** A long run without a break: file names and packages have breaks. */
function isLikeKey(value: string): boolean {
  return isLikeSecret(value) && value.split(/[^A-Za-z0-9]+/).some((run) => run.length >= 16 && /\d/.test(run))
}
