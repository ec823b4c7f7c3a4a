/**
 * A small highlighter: comments, strings, numbers, keywords, names of calls. One regular expression
 * per family of languages instead of grammars of megabytes. Wrong at the edges of a language, never
 * wrong about the text: joining the tokens gives the input.
 */
type TokenKind = 'comment' | 'string' | 'number' | 'keyword' | 'name' | 'add' | 'del'
interface Token {
  text: string
  kind?: TokenKind
}

/** Code beyond this is shown plain: colours are not worth a stall. In UTF-16 units. */
const MAX_CHARS = 40_000

const NUMBER = /(?<number>\b(?:0[xX][\da-fA-F_]+|0[bB][01_]+|\d[\d_]*(?:\.\d+)?(?:[eE][+-]?\d+)?)\b)/
const WORD = /(?<word>[A-Za-z_$][\w$]*)(?<call>\s*\()?/
const DOUBLE = /"(?:\\.|[^"\\\n])*"?/
const SINGLE = /'(?:\\.|[^'\\\n])*'?/
const BACKTICK = /`(?:\\.|[^`\\])*`?/

function words(text: string): Set<string> {
  return new Set(text.split(' '))
}

function family(comment: string, strings: RegExp[], ...more: RegExp[]): RegExp {
  const parts = [
    `(?<comment>${comment})`,
    `(?<string>${strings.map((pattern) => pattern.source).join('|')})`,
    ...more.map((pattern) => pattern.source),
    NUMBER.source,
    WORD.source,
  ]
  return new RegExp(parts.join('|'), 'gm')
}

const SLASHES = String.raw`\/\/[^\n]*|\/\*[\s\S]*?(?:\*\/|$(?![\s\S]))`
const HASH = String.raw`(?<=^|\s)#[^\n]*`
const TRIPLE = /"""[\s\S]*?(?:"""|$(?![\s\S]))|'''[\s\S]*?(?:'''|$(?![\s\S]))/

interface Language {
  pattern: RegExp
  keywords: Set<string>
}

const C_LIKE = family(SLASHES, [DOUBLE, SINGLE, BACKTICK])
const script: Language = {
  pattern: C_LIKE,
  keywords: words(
    'as async await break case catch class const continue debugger default delete do else enum export extends false finally for from function get if implements import in instanceof interface let new null of private protected public readonly return satisfies set static super switch this throw true try type typeof undefined var void while with yield',
  ),
}
const system: Language = {
  pattern: family(SLASHES, [DOUBLE, SINGLE]),
  keywords: words(
    'abstract as async auto await bool break byte case catch chan char class const constexpr continue crate default defer delete do double dyn else enum explicit extern false final float fn for func go goto if impl implements import in inline instanceof int interface let long loop map match mod module move mut namespace new nil null nullptr operator override package private protected pub public range ref return self short signed sizeof static string struct super switch template this throw throws trait true try type typedef union unsafe unsigned use using var virtual void volatile where while yield',
  ),
}
const python: Language = {
  pattern: family(String.raw`#[^\n]*`, [TRIPLE, DOUBLE, SINGLE]),
  keywords: words(
    'False None True and as assert async await begin break case class continue def del do elif else elsif end ensure except finally for from global if import in is lambda match module nonlocal not or pass raise require rescue return self then try unless until while with yield',
  ),
}
const shell: Language = {
  pattern: family(
    HASH,
    [/"(?:\\[\s\S]|[^"\\])*"?/, /'[^']*'?/],
    /(?<name>\$\{[^}\n]*\}?|\$[A-Za-z_]\w*|\$[\d@*#?$!-])/,
  ),
  keywords: words(
    'case do done elif else esac export fi for function if in local readonly return select set shift source then trap unset until while',
  ),
}
const sql: Language = {
  pattern: family(String.raw`--[^\n]*|\/\*[\s\S]*?(?:\*\/|$(?![\s\S]))`, [SINGLE, DOUBLE]),
  keywords: words(
    'add all alter and as asc begin between by case check column commit constraint create cross default delete desc distinct drop else end exists foreign from full group having if in index inner insert into is join key left like limit not null on or order outer primary references returning right rollback select set table then union unique update using values view when where with',
  ),
}
const data: Language = {
  pattern: family(
    String.raw`(?<=^|\s)(?:#|\/\/)[^\n]*`,
    [DOUBLE, SINGLE],
    /(?<name>^[ \t-]*[\w.-]+(?=\s*[:=]))/,
  ),
  keywords: words(
    'true false null yes no on off FROM RUN COPY WORKDIR CMD ENTRYPOINT ENV EXPOSE ARG USER VOLUME LABEL ADD',
  ),
}
const markup: Language = {
  pattern:
    /(?<comment><!--[\s\S]*?(?:-->|$(?![\s\S])))|(?<string>"[^"\n]*"?)|(?<keyword><\/?[A-Za-z][\w:-]*|\/?>)|(?<name>\b[\w:-]+(?==))/gm,
  keywords: words(''),
}
const style: Language = {
  pattern:
    /(?<comment>\/\*[\s\S]*?(?:\*\/|$(?![\s\S])))|(?<string>"[^"\n]*"?|'[^'\n]*'?)|(?<keyword>@[\w-]+)|(?<name>[\w-]+(?=\s*:))|(?<number>#[\da-fA-F]{3,8}\b|-?\d+(?:\.\d+)?(?:[a-z]+|%)?)/gm,
  keywords: words(''),
}
const diff: Language = {
  pattern: /(?<comment>^(?:@@|diff |index |---|\+\+\+)[^\n]*)|(?<add>^\+[^\n]*)|(?<del>^-[^\n]*)/gm,
  keywords: words(''),
}

const LANGUAGES: Record<string, Language> = {
  ...named(script, 'js javascript jsx ts typescript tsx mjs cjs'),
  ...named(
    system,
    'c h cpp c++ cc hpp cs csharp java kotlin kt go golang rust rs swift scala php dart zig proto',
  ),
  ...named(python, 'py python rb ruby'),
  ...named(shell, 'sh bash shell zsh console fish makefile make'),
  ...named(sql, 'sql sqlite postgres postgresql mysql'),
  ...named(data, 'json jsonc json5 yaml yml toml ini env properties dockerfile docker conf nginx'),
  ...named(markup, 'html xml svg vue'),
  ...named(style, 'css scss less'),
  ...named(diff, 'diff patch'),
}

function named(language: Language, names: string): Record<string, Language> {
  return Object.fromEntries(names.split(' ').map((name) => [name, language]))
}

/** An unknown language, or very long code, is one plain token. */
export function highlight(code: string, languageName: string): Token[] {
  const language = LANGUAGES[languageName.toLowerCase()]
  if (language === undefined || code.length > MAX_CHARS) return [{ text: code }]
  const caseless = language === sql
  const tokens: Token[] = []
  let at = 0
  for (const match of code.matchAll(language.pattern)) {
    const token = tokenOf(match, language.keywords, caseless)
    if (token === undefined) continue
    if (match.index > at) tokens.push({ text: code.slice(at, match.index) })
    tokens.push(token)
    at = match.index + token.text.length
  }
  if (at < code.length) tokens.push({ text: code.slice(at) })
  return tokens
}

function tokenOf(match: RegExpExecArray, keywords: Set<string>, caseless: boolean): Token | undefined {
  const groups = match.groups ?? {}
  const word = groups['word']
  if (word !== undefined) {
    if (keywords.has(caseless ? word.toLowerCase() : word)) return { text: word, kind: 'keyword' }
    return groups['call'] === undefined ? undefined : { text: word, kind: 'name' }
  }
  for (const kind of ['comment', 'string', 'number', 'keyword', 'name', 'add', 'del'] as const) {
    if (groups[kind] !== undefined && match[0] !== '') return { text: match[0], kind }
  }
  return undefined
}
