/**
 * `git` where it only reads: in a repository whose configuration can name no program
 * (`git-config.ts`), with what needs no configuration off (`READS_ONLY`): hooks, which are files,
 * and every way to fetch an object that is missing.
 */
import { type Options, usesOnly as keepsToAny } from './options.ts'
import { type ArgWord, mayBeOption } from './words.ts'

const OFF = {
  'core.fsmonitor': 'false',
  'core.sshCommand': 'false',
  'protocol.allow': 'never',
  'submodule.recurse': 'false',
  'diff.ignoreSubmodules': 'all',
  'core.hooksPath': '/dev/null',
  'core.pager': 'cat',
  'log.showSignature': 'false',
  'gpg.program': '/bin/false',
  'gpg.openpgp.program': '/bin/false',
  'gpg.x509.program': '/bin/false',
  'gpg.ssh.program': '/bin/false',
}

/**
 * The environment of a command that only reads and has git in it. The first folder of PATH is the
 * image's: the git there turns off filters, external diffs and textconv, for which no setting of
 * one name exists.
 */
export const READS_ONLY: Readonly<Record<string, string>> = {
  PATH: '/usr/lib/sandlot/reads:/usr/local/bin:/usr/bin:/bin:/usr/local/sbin:/usr/sbin:/sbin',
  GIT_NO_LAZY_FETCH: '1',
  // No protocol has this name. It also counts in submodules, and against `protocol.file.allow`.
  GIT_ALLOW_PROTOCOL: 'none',
  GIT_CONFIG_COUNT: String(Object.keys(OFF).length),
  ...Object.fromEntries(
    Object.entries(OFF).flatMap(([key, value], n) => [
      [`GIT_CONFIG_KEY_${n}`, key],
      [`GIT_CONFIG_VALUE_${n}`, value],
    ]),
  ),
}

const FORMAT =
  'oneline pretty=? format=? abbrev-commit no-abbrev-commit abbrev=? date= decorate=? no-decorate graph color=? no-color encoding=? no-notes relative-date parents children left-right'
const DIFF =
  'patch no-patch unified= raw stat=? numstat shortstat dirstat=? summary name-only name-status cached staged merge-base minimal patience histogram diff-algorithm= word-diff=? color-words=? no-renames find-renames=? find-copies=? diff-filter= exit-code quiet ignore-all-space ignore-space-change ignore-space-at-eol ignore-blank-lines ignore-cr-at-eol function-context inter-hunk-context= full-index binary check no-ext-diff no-textconv text relative=? src-prefix= dst-prefix= no-prefix no-index pickaxe-all pickaxe-regex line-prefix= compact-summary'
const CHOICE =
  'max-count= skip= since= after= until= before= author= committer= grep= all-match invert-grep regexp-ignore-case extended-regexp fixed-strings perl-regexp merges no-merges first-parent min-parents=? max-parents=? all branches=? tags=? remotes=? glob= exclude= follow full-history simplify-merges topo-order date-order author-date-order reverse not source name-only name-status cherry-pick cherry-mark ancestry-path boundary walk-reflogs no-walk count cc'

const LOG: Options = `-pszwabBMCREFiPtcmgu -nUSGLl= -<n> ${FORMAT} ${DIFF} ${CHOICE}`

const COMMANDS: Readonly<Record<string, Options | ((words: readonly ArgWord[]) => boolean)>> = {
  status:
    '-sbvzu short branch show-stash porcelain=? long verbose untracked-files=? ignored=? column=? no-column ahead-behind no-ahead-behind renames no-renames find-renames=?',
  log: LOG,
  shortlog: `-nsecw -<n> numbered summary email committer group= ${CHOICE}`,
  show: LOG,
  diff: `-puszwabBMCR -USGl= -<n> ${DIFF}`,
  'diff-tree': `-prtszmcvuMCRB -US= root no-commit-id stdin ${DIFF} ${FORMAT}`,
  'rev-parse':
    '-q show-toplevel show-prefix show-cdup git-dir absolute-git-dir git-common-dir is-inside-work-tree is-inside-git-dir is-bare-repository is-shallow-repository verify quiet short=? abbrev-ref=? symbolic symbolic-full-name all branches=? tags=? remotes=? default= revs-only no-revs flags no-flags',
  'rev-list': LOG,
  'ls-files':
    '-cdmoistukvzf -x= cached deleted modified others ignored stage unmerged killed full-name error-unmatch directory no-empty-directory eol deduplicate exclude= exclude-standard abbrev=?',
  'ls-tree': '-drtlz long name-only name-status object-only full-name full-tree abbrev=? format=',
  'cat-file': '-etps batch batch-check batch-all-objects unordered',
  blame:
    '-lbtefnswcpCM -LS= show-name show-number show-email porcelain line-porcelain incremental root show-stats since= abbrev=? date= ignore-rev= color-lines color-by-age no-textconv',
  describe: 'tags all contains abbrev=? long always exact-match candidates= match= exclude= first-parent',
  'name-rev': 'name-only tags refs= exclude= all always no-undefined',
  'merge-base': '-a all octopus independent is-ancestor fork-point',
  'count-objects': '-vH verbose human-readable <0>',
  'check-ignore': '-qvzn quiet verbose non-matching no-index stdin',
  'for-each-ref': 'count= sort= format= points-at= merged=? no-merged=? contains=? no-contains=? ignore-case',
  grep: '-niIrwvhHEGFPlLzcoaWpqt -eABCmf= -<n> cached no-index untracked no-exclude-standard exclude-standard ignore-case word-regexp invert-match full-name extended-regexp basic-regexp fixed-strings perl-regexp line-number column files-with-matches files-without-match null count only-matching color=? no-color heading break context= after-context= before-context= show-function function-context max-depth= max-count= and or not all-match quiet threads= recursive',
  version: 'build-options <0>',
  reflog: (words) =>
    words.every(
      ({ literal }) => literal !== undefined && !/^(expire|delete|drop|write|exists)$/.test(literal),
    ) && usesOnly(LOG, words),
  stash: (words) =>
    (words[0]?.literal === 'list' || words[0]?.literal === 'show') && usesOnly(LOG, words.slice(1)),
  branch: (words) =>
    lists(
      words,
      '-arvi all remotes verbose show-current list no-color color=? column=? no-column ignore-case sort= format= contains=? no-contains=? merged=? no-merged=? points-at= abbrev=? no-abbrev',
      /^(--list|-l|--contains.*|--merged.*|--no-merged.*|--no-contains.*|--points-at.*)$/,
    ),
  tag: (words) =>
    lists(
      words,
      '-li -<n> list sort= format= contains=? no-contains=? merged=? no-merged=? points-at= column=? no-column color=? ignore-case',
      /^(--list|-[a-z]*l[a-z]*|-n\d*|--contains.*|--merged.*|--no-merged.*|--no-contains.*|--points-at.*)$/,
    ),
  remote: (words) =>
    usesOnly('-v verbose <0>', words) ||
    (words[0]?.literal === 'get-url' && usesOnly('push all', words.slice(1))),
  worktree: (words) => words[0]?.literal === 'list' && usesOnly('-vz porcelain verbose <0>', words.slice(1)),
  config: readsConfig,
}

/** Git sets a setting where its name stands before the option that would have read it. */
function readsConfig(words: readonly ArgWord[]): boolean {
  const given = words.findIndex((word) => !mayBeOption(word))
  const options = given < 0 ? words : words.slice(0, given)
  const others = words.slice(options.length)
  return (
    options.some(({ literal = '' }) => /^(--get|--get-all|--get-regexp|--list|-l)$/.test(literal)) &&
    options.every(({ literal }) => literal !== '--') &&
    others.every(({ literal }) => literal !== undefined) &&
    others.length <= 2 &&
    usesOnly(
      '-lz get get-all get-regexp list local global system worktree show-origin show-scope name-only null includes no-includes type=? bool int path',
      options,
    )
  )
}

/**
 * If an option lacks its value, most of git's commands take the next word for it and still run.
 */
function usesOnly(options: Options, words: readonly ArgWord[]): boolean {
  return keepsToAny(options, words, { peeks: true })
}

/** `words` without git's own name. */
export function isReadOnlyGit(words: readonly ArgWord[]): boolean {
  let at = 0
  for (; at < words.length; at++) {
    const text = words[at]?.literal
    if (text === undefined) return false
    if (text === '--version') return words.length === 1
    if (text === '-C' && words[at + 1]?.several === false) at++
    else if (
      text !== '--no-pager' &&
      text !== '-P' &&
      text !== '--no-optional-locks' &&
      text !== '--literal-pathspecs'
    )
      break
  }
  const name = words[at]?.literal
  if (name === undefined || !Object.hasOwn(COMMANDS, name)) return false
  const rest = words.slice(at + 1)
  const known = COMMANDS[name]
  return typeof known === 'function' ? known(rest) : known !== undefined && usesOnly(known, rest)
}

/** A name makes a branch or a tag, unless an option says that it is only looked for. */
function lists(words: readonly ArgWord[], options: Options, looking: RegExp): boolean {
  const end = words.findIndex(({ literal }) => literal === '--')
  const looks = words
    .slice(0, end < 0 ? words.length : end)
    .some(({ literal }) => literal !== undefined && looking.test(literal))
  return usesOnly(`${options} -l${looks ? '' : ' <0>'}`, words)
}
