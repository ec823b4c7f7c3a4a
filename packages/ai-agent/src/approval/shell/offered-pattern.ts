/** Which pattern a command suggests: only for programs whose first words say what they are about to do. */
import { certainlyMatches, quoteWord } from './pattern.ts'
import type { ArgWord } from './words.ts'

/** `npm test`, `git add`: the second word is what they do. `npm run`: the third. */
const WITH_COMMANDS = new Set(
  'git npm pnpm yarn bun cargo go dotnet mvn gradle pip pip3 uv poetry rake bundle composer mix flutter terraform gh turbo nx brew apt apt-get docker kubectl helm'.split(
    ' ',
  ),
)
const SCRIPT_RUNNERS = new Set(['run', 'run-script', 'exec', 'x', 'compose', 'tool'])
/** They do one thing to the files that they are given, or check them. */
const BY_NAME = new Set(
  'mkdir touch cp mv ln tsc eslint prettier oxlint oxfmt biome ruff black mypy pyright pytest vitest jest mocha make cmake ninja gcc g++ clang rustfmt gofmt shellcheck shfmt zip unzip gzip gunzip tar rsync'.split(
    ' ',
  ),
)

/** A pattern that covers these words, or undefined: then only the command itself can be remembered. */
export function commandPattern(words: readonly ArgWord[]): string | undefined {
  const named = namedWords(words)
  if (named === undefined) return undefined
  const pattern = `${named.map(quoteWord).join(' ')} *`
  // An offer that does not even cover this call would be asked again at once.
  return certainlyMatches(pattern, words) ? pattern : undefined
}

function namedWords(words: readonly ArgWord[]): string[] | undefined {
  const [name, verb, script] = words.map(({ literal }) => literal)
  if (name === undefined) return undefined
  if (BY_NAME.has(name)) return [name]
  if (!WITH_COMMANDS.has(name) || verb === undefined || !/^[a-z][\w:-]*$/.test(verb)) return undefined
  if (!SCRIPT_RUNNERS.has(verb)) return [name, verb]
  return script === undefined || !/^[\w:@/.-]+$/.test(script) || script.startsWith('-')
    ? undefined
    : [name, verb, script]
}
