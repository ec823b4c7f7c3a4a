/**
 * Options by which well-known programs run another program, or write where nobody would expect it. Whoever allows
 * `tar *` does not mean `tar --checkpoint-action=exec=…`; such a command asks, unless the rule names the option itself.
 */
import { isPlainSedScript } from './sed.ts'
import { type ArgWord, mayBeOption } from './words.ts'

interface Escape {
  /** Letters of short options, alone or in a cluster. */
  short?: string
  /** Long options; abbreviations count. */
  long?: string
  /** Any word of this form. */
  word?: RegExp
}

const GIT_SETTINGS = String.raw`(core\.(pager|editor|fsmonitor|sshcommand|hookspath|askpass|gitproxy|worktree)|alias\.|include|credential\.|gpg\.|url\.|protocol\.|.*\.(textconv|command|cmd|path|program|helper|driver|clean|smudge|process|proxy|pager|uploadpack|receivepack|vcs))`

const ESCAPES: Readonly<Record<string, Escape>> = {
  git: {
    long: 'upload-pack receive-pack exec ext-diff open-files-in-pager output config config-env exec-path extcmd tool git-dir work-tree template',
    short: 'Ox',
    // A transport helper (`ext::sh -c …`), or a setting behind `-c` and `git config`.
    word: new RegExp(String.raw`^[\w+.-]+::\S*$|^ext::|^(-c)?${GIT_SETTINGS}`, 'i'),
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
  curl: { short: 'K', long: 'config' },
  wget: { short: 'e', long: 'execute use-askpass config' },
  zip: { short: 'T', long: 'unzip-command test' },
  make: { long: 'eval', word: /^(SHELL|\.SHELLFLAGS|MAKE|MAKEFLAGS)[:+?]*=/ },
  npm: { short: 'c', long: 'script-shell node-options shell call userconfig globalconfig prefix' },
  pnpm: { short: 'c', long: 'script-shell node-options shell-mode config' },
  yarn: { long: 'script-shell use-yarnrc' },
  go: { word: /^--?(exec|toolexec|vettool|overlay|modfile)(=|$)/ },
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
  pytest: { short: 'pc', long: 'rootdir config-file override-ini' },
  docker: { short: 'v', long: 'privileged volume mount pid' },
  awk: { short: 'fliE', long: 'file load include exec', word: /system|getline|[|>]|@/ },
}
const AWKS = new Set(['gawk', 'mawk', 'nawk', 'original-awk'])

/** True when one of the words is, or may be, such an option of the program `name`. Without its own name among the words. */
export function escapes(words: readonly ArgWord[], name: string): boolean {
  const base = name.split('/').at(-1) ?? ''
  if (base === 'sed') return sedEscapes(words)
  const key = AWKS.has(base) ? 'awk' : base
  const escape = Object.hasOwn(ESCAPES, key) ? ESCAPES[key] : undefined
  if (escape === undefined) return false
  let ended = false
  for (const word of words) {
    if (word.literal === '--') ended = true
    if (word.literal === undefined) {
      if ((!ended && mayBeOption(word)) || word.loose) return true
      if (escape.word?.test(word.prefix) === true) return true
    } else if (!ended && isEscape(word.literal, escape)) return true
    else if (ended && escape.word?.test(word.literal) === true && key !== 'find') return true
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
  return !scripts.every(isPlainSedScript)
}
