/** The pattern of a rule about commands, and how it compares with the words of one. */
import { parse } from 'unbash'
import { LRUCache } from 'lru-cache'
import { type ArgWord, argWord, mayBeOption, mayBecome } from './words.ts'
import { isOrdersFile } from '../files.ts'
import { isPlainSedScript } from './sed.ts'

/** Any words, also none. */
const WILD = Symbol('*')
/** Each word of a pattern costs one pass over the command's words. */
const MAX_WORDS = 200
/** More say nothing that a reader could check. */
const MAX_WILDCARDS = 16
type PatternWord = string | typeof WILD

const MAX_CACHED = 500
const read = new LRUCache<string, readonly PatternWord[] | { problem: string }>({ max: MAX_CACHED })

/** Why `text` cannot stand in a rule; undefined when it can. */
export function patternProblem(text: string): string | undefined {
  const words = readPattern(text)
  return 'problem' in words ? words.problem : undefined
}

function readPattern(text: string): readonly PatternWord[] | { problem: string } {
  const known = read.get(text)
  if (known !== undefined) return known
  const made = parsePattern(text)
  read.set(text, made)
  return made
}

function parsePattern(text: string): readonly PatternWord[] | { problem: string } {
  const { commands, errors = [] } = parse(text)
  const command = commands[0]?.command
  if (
    errors.length > 0 ||
    commands.length !== 1 ||
    command?.type !== 'Command' ||
    commands[0]?.background === true
  )
    return { problem: 'must be one simple command, like npm test * (without ; | & and redirections)' }
  if (command.name === undefined || command.prefix.length > 0 || command.redirects.length > 0)
    return { problem: 'must be one simple command, without assignments and redirections' }
  const words: PatternWord[] = []
  for (const word of [command.name, ...command.args]) {
    const known = word.type === 'Word' ? argWord(word).literal : word.text
    if (known === undefined && word.text !== '*')
      return { problem: `${word.text} is not a plain word; quote it, or use * alone for any further words` }
    words.push(known ?? WILD)
  }
  if (words.length > MAX_WORDS) return { problem: `has ${words.length} words; ${MAX_WORDS} may be in it` }
  const wildcards = words.filter((word) => word === WILD).length
  if (wildcards > MAX_WILDCARDS) return { problem: `has ${wildcards} *; ${MAX_WILDCARDS} may be in it` }
  return words
}

/** A word as it is written in a pattern. */
export function quoteWord(word: string): string {
  return /^[\w@%+=:,./-]+$/.test(word) && word !== '' ? word : `'${word.replaceAll("'", String.raw`'\''`)}'`
}

/**
 * True if a rule that allows covers this command: certainly, or not. A `*` does not cover options
 * by which the program would run another one.
 */
export function certainlyMatches(pattern: string, words: readonly ArgWord[]): boolean {
  const wanted = readPattern(pattern)
  if ('problem' in wanted || !compare(wanted, words, false)) return false
  if (!wanted.includes(WILD)) return true
  const named = new Set<PatternWord>(wanted)
  return !escapes(words, words[0]?.literal ?? '', named)
}

/**
 * True if a rule that denies or asks is meant by this command: certainly, perhaps, or not. The
 * folder of the program's name does not count.
 */
export function meantBy(pattern: string, words: readonly ArgWord[]): 'yes' | 'maybe' | 'no' {
  const wanted = readPattern(pattern)
  if ('problem' in wanted) return 'maybe'
  const [head, ...rest] = words
  if (head === undefined) return 'no'
  const base = head.literal?.split('/').at(-1)
  const bare = base === undefined ? words : [{ ...head, literal: base, prefix: base }, ...rest]
  for (const candidate of [words, bare]) if (compare(wanted, candidate, false)) return 'yes'
  if (compare(wanted, words, true) || compare(wanted, bare, true)) return 'maybe'
  return behindOptions(wanted, bare) ? 'maybe' : 'no'
}

/** `git -C x push` is meant by `git push *`: options stand between the name and what it does. */
function behindOptions(pattern: readonly PatternWord[], words: readonly ArgWord[]): boolean {
  const [name, ...literals] = pattern.filter((word) => word !== WILD)
  const [head, option, ...rest] = words
  if (literals.length === 0 || head?.literal !== name || option?.prefix.startsWith('-') !== true) return false
  let at = 0
  for (const word of rest)
    if (word.literal === literals[at] || (word.literal === undefined && word.loose)) at++
  return at >= literals.length
}

/** `perhaps`: a word that is not known may be whatever the pattern has. */
function compare(pattern: readonly PatternWord[], words: readonly ArgWord[], perhaps: boolean): boolean {
  // Row by row: which beginnings of the words the pattern so far can stand for.
  let reached = new Uint8Array(words.length + 1)
  reached[0] = 1
  const skipLoose = (row: Uint8Array): void => {
    // In doubt a word that may vanish does.
    if (perhaps) for (const [at, word] of words.entries()) if (word.loose && row[at] === 1) row[at + 1] = 1
  }
  skipLoose(reached)
  for (const wanted of pattern) {
    const next = new Uint8Array(words.length + 1)
    for (let at = reached.indexOf(1); at !== -1; at = reached.indexOf(1, at + 1)) {
      if (wanted === WILD) {
        next.fill(1, at)
        break
      }
      const word = words[at]
      if (word === undefined) continue
      if (word.literal === wanted) next[at + 1] = 1
      if (!perhaps || word.literal !== undefined) continue
      // One that may become several may go on being the next ones.
      if (word.loose) next[at] = 1
      if (word.loose || wanted.startsWith(word.prefix)) next[at + 1] = 1
    }
    skipLoose(next)
    reached = next
  }
  return reached[words.length] === 1
}

// * Options by which well-known programs run another program, or write where it is not expected
// it. Allowing `tar *` does not mean `tar --checkpoint-action=exec=…`; such a command asks,
// unless the rule names the option itself.

interface Escape {
  /** Letters of short options, alone or in a cluster. */
  short?: string
  /** Long options; abbreviations count. */
  long?: string
  /** Any word of this form. */
  word?: RegExp
  /** Its words are programs of a language, so one that is not known may do anything. */
  text?: true
}

/** Settings for which git runs, or trusts, something. */
const GIT_SETTINGS =
  /^(-c|--config=)?(core\.(pager|editor|fsmonitor|sshcommand|hookspath|askpass|gitproxy|worktree|alternaterefscommand)|diff\.external|sequence\.editor|init\.templatedir|submodule\..*\.update|interactive\.|sendemail\.|imap\.|instaweb\.|web\.|browser\.|man\.|guitool\.|hook\.|lfs\.|trailer\.|pager\.|safe\.|alias\.|include|credential\.|gpg\.|url\.|protocol\.|.*\.(textconv|command|cmd|path|program|helper|driver|clean|smudge|process|proxy|pager|uploadpack|receivepack|packobjectshook|vcs))/i
const GIT_TRANSPORT = /^[\w+.-]+::\S*$|^ext::/i
const SETTINGS: Escape = { short: 'fe', long: 'file edit rename-section', word: GIT_SETTINGS, text: true }

const COMPILER: Escape = { word: /^-(wrapper|fplugin|B|specs|Xclang)|^--(specs|config)|^@/ }

const ESCAPES: Readonly<Record<string, Escape>> = {
  git: {
    long: 'upload-pack receive-pack exec ext-diff open-files-in-pager output config config-env exec-path extcmd tool git-dir work-tree template',
    short: 'Ox',
    // A transport helper: `ext::sh -c …`.
    word: GIT_TRANSPORT,
  },
  find: { word: /^-(delete|exec|execdir|ok|okdir|fprint|fprint0|fprintf|fls|files0-from)$/ },
  tar: {
    short: 'IF',
    long: 'checkpoint-action to-command use-compress-program rsh-command rmt-command info-script new-volume-script',
    word: /^[A-Za-z]*[IF][A-Za-z]*$/,
  },
  rsync: { short: 'e', long: 'rsh rsync-path' },
  sort: { short: 'oT', long: 'output compress-program temporary-directory' },
  ssh: { short: 'oFJWRLDE', word: /./ },
  scp: { short: 'oSFJ', word: /ProxyCommand/i },
  sftp: { short: 'oSFJDb', word: /ProxyCommand/i },
  apt: { short: 'oc', long: 'option config-file' },
  'apt-get': { short: 'oc', long: 'option config-file' },
  dpkg: { long: 'pre-invoke post-invoke root instdir admindir' },
  gcc: COMPILER,
  'g++': COMPILER,
  clang: COMPILER,
  'clang++': COMPILER,
  cmake: { word: /^-[EPC]/ },
  gradle: { word: /^(-I|--init-script)/ },
  pip: { long: 'python' },
  pip3: { long: 'python' },
  mypy: { long: 'python-executable config-file install-types' },
  fd: { short: 'xX', long: 'exec exec-batch' },
  fdfind: { short: 'xX', long: 'exec exec-batch' },
  sqlite3: { word: /^\s*\.|^--?(cmd|init)$|load_extension|writefile|edit\s*\(/im, text: true },
  psql: { short: 'f', long: 'file', word: /\\|program/i, text: true },
  mysql: { word: /\\|system|source|pager/i, text: true },
  curl: { short: 'K', long: 'config' },
  wget: { short: 'e', long: 'execute use-askpass config' },
  zip: { short: 'T', long: 'unzip-command test' },
  make: { long: 'eval', word: /^(SHELL|\.SHELLFLAGS|MAKE|MAKEFLAGS)[:+?]*=/ },
  npm: {
    short: 'c',
    long: 'script-shell node-options shell call userconfig globalconfig prefix git python editor viewer browser',
  },
  pnpm: { short: 'c', long: 'script-shell node-options shell-mode config' },
  yarn: { long: 'script-shell use-yarnrc' },
  go: { word: /^--?(exec|toolexec|vettool|overlay|modfile)(=|$)|extld/ },
  cargo: { long: 'config', word: /^\+/ },
  rg: { long: 'pre hostname-bin' },
  tree: { short: 'oR', long: 'output' },
  uniq: { word: /./ },
  date: { short: 's', long: 'set' },
  less: { short: 'ok', word: /^\+|./ },
  man: { short: 'PH', long: 'pager html' },
  vim: { short: 'cSsu', long: 'cmd', word: /^[+:]/ },
  vi: { short: 'cSsu', long: 'cmd', word: /^[+:]/ },
  nvim: { short: 'cSsu', long: 'cmd', word: /^[+:]/ },
  tcpdump: { short: 'zw' },
  pytest: { short: 'pco', long: 'rootdir config-file override-ini pdbcls basetemp pastebin' },
  docker: { short: 'v', long: 'privileged volume mount pid' },
  awk: {
    short: 'fliEodpDW',
    long: 'file load include exec pretty-print dump-variables profile debug',
    word: /system|getline|[|>]|@/,
    text: true,
  },
}
const AWKS = new Set(['gawk', 'mawk', 'nawk', 'original-awk'])

/**
 * True when one of the words is, or may be, such an option of the program `name`, or a file that
 * others take orders from. `named`: the words that the rule has itself, the name among them.
 */
function escapes(all: readonly ArgWord[], name: string, named: ReadonlySet<unknown>): boolean {
  const words = all.filter(({ literal }) => literal === undefined || !named.has(literal))
  const base = name.split('/').at(-1) ?? ''
  if (base === 'sed') return sedEscapes(words)
  if (base === 'git') return gitEscapes(words, all)
  if (words.some(({ literal }) => literal !== undefined && namesOrders(literal))) return true
  const key = AWKS.has(base) ? 'awk' : base
  return Object.hasOwn(ESCAPES, key) && isEscaping(words, ESCAPES[key])
}

/** Only `git config` and `-c` take settings: `git add hook.process.ts` is a file. */
function gitEscapes(words: readonly ArgWord[], all: readonly ArgWord[]): boolean {
  const placeOf = (name: string): number =>
    all.findIndex((word) => word.literal === name || mayBecome(word, name))
  const config = placeOf('config')
  const isSetting = (word: ArgWord | undefined): boolean => /^(-c|--config)$/.test(word?.literal ?? '')
  return (
    isEscaping(words, ESCAPES['git']) ||
    all.some((word, at) => word.literal === undefined && isSetting(all[at - 1])) ||
    (config >= 0 &&
      isEscaping(
        words.filter((word) => all.indexOf(word) > config),
        SETTINGS,
      )) ||
    (all.some(({ prefix }) => /^(-c|--config)/.test(prefix)) && isEscaping(words, { word: GIT_SETTINGS })) ||
    (placeOf('clone') >= 0 && isEscaping(words, { short: 'u' }))
  )
}

/** `HEAD` is a word of many languages. */
function namesOrders(word: string): boolean {
  const path = word.slice(word.indexOf('=') + 1)
  return path !== 'HEAD' && isOrdersFile(path)
}

function isEscaping(words: readonly ArgWord[], escape: Escape = {}): boolean {
  if (escape.text === true && words.some(({ literal }) => literal === undefined)) return true
  let ended = false
  for (const word of words) {
    if (word.literal === '--') ended = true
    if (word.literal === undefined) {
      if ((!ended && mayBeOption(word)) || word.loose) return true
      if (escape.word?.test(word.prefix) === true) return true
    } else if (!ended && isEscape(word.literal, escape)) return true
    else if (ended && escape.word?.test(word.literal) === true) return true
  }
  return false
}

function isEscape(word: string, { short = '', long = '', word: form }: Escape): boolean {
  if (form?.test(word) === true) return true
  if (word.startsWith('--')) {
    const given = word.slice(2).split('=', 1)[0] ?? ''
    return given !== '' && long.split(' ').some((name) => name !== '' && name.startsWith(given))
  }
  return word.startsWith('-') && Array.from(word.slice(1)).some((letter) => short.includes(letter))
}

function sedEscapes(words: readonly ArgWord[]): boolean {
  if (words.some(({ literal }) => literal === undefined || /^(-[a-zA-Z]*f|--file)/.test(literal))) return true
  const scripts = words.flatMap(({ literal = '' }, at) => {
    const joined = /^(--expression=|-[nErsuz]*e)(?<script>[^]+)$/.exec(literal)?.groups?.['script']
    return joined !== undefined || /^(--expression|-[nErsuz]*e)$/.test(words[at - 1]?.literal ?? '')
      ? [joined ?? literal]
      : []
  })
  const [first] = words.filter(({ literal = '' }) => !literal.startsWith('-'))
  if (scripts.length === 0 && first?.literal !== undefined) scripts.push(first.literal)
  return !scripts.every((script) => isPlainSedScript(script))
}
