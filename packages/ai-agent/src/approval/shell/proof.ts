/**
 * Which commands only read. Proven means: the program is on this list, and every one of its words
 * is an option that only reads, or certainly no option. What is not on the list is not proven,
 * whatever it does. Expansions within the words are judged on their own.
 */
import { isPlainFind } from './find.ts'
import { isReadOnlyGit } from './git.ts'
import { type Options, SORT, UNIQ, XXD, asXxd, readArguments, usesOnly } from './options.ts'
import { isPlainSedScript } from './sed.ts'
import { type ArgWord, knownWord, systemName } from './words.ts'

/** Whatever they are given: no option of theirs writes, runs a program, or evaluates a word. */
const HARMLESS = new Set(
  (
    'cat ls dir vdir wc head tail stat du df grep egrep fgrep cut tr nl tac rev fold fmt paste comm join expand unexpand od ' +
    'hexdump cmp diff basename dirname realpath readlink pwd whoami id groups uname uptime printenv which type true false : echo ' +
    'seq nproc free md5sum sha1sum sha224sum sha256sum sha384sum sha512sum b2sum cksum sum base64 base32 tsort numfmt factor ' +
    'arch tty logname users who cd pushd popd dirs sleep expr ps jq column'
  ).split(' '),
)

type Proof = Options | ((words: readonly ArgWord[]) => boolean)

const PROOFS: Readonly<Record<string, Proof>> = {
  find: (words) => isPlainFind([FIND, ...words]),
  git: isReadOnlyGit,
  sed: isReadOnlySed,
  // The last word of these is a file to write.
  uniq: `${UNIQ} <1>`,
  xxd: (words) => usesOnly(`${XXD} <1>`, asXxd(words)),
  sort: SORT,
  tree: '-adfilxpsugDFqNQhCnrtvUXJ -LPI= noreport dirsfirst filesfirst gitignore prune du si charset= filelimit= matchdirs ignore-case metafirst sort=? inodes device',
  file: '-bchiLkNnprsv0 -eFfP= brief mime mime-type mime-encoding dereference no-dereference keep-going extension',
  date: (words) =>
    // A word that is no option and no format would set the clock.
    readArguments(
      '-uR -dr= utc universal date= reference= iso-8601=? rfc-3339= rfc-email',
      words.map(dateFlag),
    )?.others.every(({ prefix }) => prefix.startsWith('+')) === true,
  hostname: '-sfidAI short fqdn ip-address all-ip-addresses <0>',
  rg: '-niIlcwvFoSUsuLpPNHhx0aq. -egtTABCmrjEdM= line-number no-line-number ignore-case case-sensitive smart-case files-with-matches files-without-match count count-matches word-regexp invert-match fixed-strings only-matching multiline multiline-dotall hidden no-hidden no-ignore no-ignore-vcs no-heading heading with-filename no-filename files type-list json stats pretty pcre2 null sort= sortr= regexp= glob= iglob= type= type-not= after-context= before-context= context= max-count= max-depth= replace= color= colors= column no-column trim vimgrep passthru line-regexp quiet no-messages max-columns= max-columns-preview max-filesize= text follow unrestricted threads= encoding= debug no-config',
  test: isPlainTest,
  '[': isPlainTest,
  printf: isPlainPrintf,
  read: (words) => usesOnly('-rs -dnNtpu=', words) && namesOnly(words),
  set: (words) =>
    words.every(({ literal }) => literal !== undefined && /^([-+][euxo]+|pipefail)$/.test(literal)),
  exit: isNumberOrNothing,
  return: isNumberOrNothing,
  break: isNumberOrNothing,
  continue: isNumberOrNothing,
  shift: isNumberOrNothing,
  local: declaresPlainly,
  declare: declaresPlainly,
  readonly: declaresPlainly,
  wait: (words) => words.length === 0,
  jobs: (words) => words.length === 0,
}

/** Asked for their version, these read nothing that a workspace could have put in their way. */
const VERSIONED =
  /^(node|python|python3|gcc|g\+\+|make|perl|ruby|bash|sed|grep|find|tar|curl|wget|jq|rg|sqlite3|awk|gawk)$/

const FIND = knownWord('find')

/** True when running these words only reads. The first word is the program's name and known. */
export function provesReadOnly(words: readonly ArgWord[]): boolean {
  const [head, ...rest] = words
  const name = systemName(head?.literal)
  if (name === undefined) return false
  // By its whole path it would not be the one that runs no other program.
  if (name === 'git' && head?.literal !== 'git') return false
  if (HARMLESS.has(name)) return true
  if (VERSIONED.test(name) && rest.length === 1 && rest[0]?.literal === '--version') return true
  const proof = Object.hasOwn(PROOFS, name) ? PROOFS[name] : undefined
  return typeof proof === 'function' ? proof(rest) : proof !== undefined && usesOnly(proof, rest)
}

/** `-I` may have its value joined: `-Iseconds`. */
function dateFlag(word: ArgWord): ArgWord {
  return /^-I(date|hours|minutes|seconds|ns)?$/.test(word.literal ?? '')
    ? { ...word, literal: '-u', prefix: '-u' }
    : word
}

/** `-v` and `%n` set variables. */
function isPlainPrintf([format]: readonly ArgWord[]): boolean {
  const text = format?.literal
  return (
    text !== undefined && !text.startsWith('-') && !/%[^%a-zA-Z]*[hlLjzt]*n/.test(text.replaceAll('%%', ''))
  )
}

const COMPARES = new Set('= == != < > -eq -ne -lt -le -gt -ge -nt -ot -ef'.split(' '))

/**
 * `test -v name[…]` evaluates the index. So nothing that is not known may stand where an operator
 * could: only as the operand of a known one, with so few words that there is one way to read them.
 */
function isPlainTest(given: readonly ArgWord[]): boolean {
  const words = given.at(-1)?.literal === ']' ? given.slice(0, -1) : given
  if (words.some(({ literal, several }) => several || literal === '-v' || literal === '-R')) return false
  if (words.every(({ literal }) => literal !== undefined)) return true
  const rest = words[0]?.literal === '!' ? words.slice(1) : words
  if (rest.length === 1) return true
  if (rest.length === 2) return rest[0]?.literal !== undefined
  return rest.length === 3 && COMPARES.has(rest[1]?.literal ?? '')
}

/** `read` evaluates an index in a name, and sets what it names. */
function namesOnly(words: readonly ArgWord[]): boolean {
  return words.every(
    ({ literal }, at) =>
      literal !== undefined &&
      (literal.startsWith('-') ||
        /^-\w*[dnNtpu]$/.test(words[at - 1]?.literal ?? '') ||
        /^[a-z_][a-z0-9_]*$/.test(literal)),
  )
}

/**
 * Without options (`-i` computes, `-n` makes other names of it); the values are judged as
 * assignments. Behind `command` a value may become further words; one in parentheses is read as
 * source.
 */
function declaresPlainly(words: readonly ArgWord[]): boolean {
  return words.every(({ literal, prefix, several }) =>
    literal === undefined
      ? !several && /^[a-z_][a-z0-9_]*=/.test(prefix)
      : /^[a-z_][a-z0-9_]*(=(?!\()|$)/.test(literal),
  )
}

function isNumberOrNothing(words: readonly ArgWord[]): boolean {
  return words.length === 0 || (words.length === 1 && /^\d{1,9}$/.test(words[0]?.literal ?? ''))
}

function isReadOnlySed(words: readonly ArgWord[]): boolean {
  const given = readArguments(
    '-nErsuz -el= quiet silent regexp-extended separate unbuffered null-data posix sandbox debug expression= line-length=',
    words,
  )
  if (given === undefined) return false
  const { operands, has, values } = given
  const scripts = has('e', 'expression') ? values('e', 'expression') : [operands[0]]
  return scripts.every((script) => script !== undefined && isPlainSedScript(script))
}
