/**
 * Losses of git commands, by their words. Committed state is safe; these discard what is not
 * committed or what only git still has. An unlisted command, or an unlisted option of one that may
 * lose something, may lose anything.
 */
import { posix } from 'node:path'
import { isHarmlessSetting } from './git-config.ts'
import { type Loss, UNKNOWN, lost } from './loss.ts'
import { lossesTable } from './losses-table.ts'
import type { ArgWord } from './words.ts'

/** They refuse to lose what is not committed, or only add to what git has, with any option. */
const KEEPS = new Set(
  (
    'add commit push fetch clone init remote config help version status stage notes lfs bisect maintenance show-ref show-branch ' +
    'fsck verify-commit verify-tag request-pull cherry var check-attr check-mailmap check-ref-format mktree hash-object write-tree commit-tree pack-refs'
  ).split(' '),
)
/** They print, and write where an option names a file. */
const PRINTS = new Set(
  'log show diff diff-tree diff-index diff-files range-diff shortlog blame grep ls-files ls-tree ls-remote rev-parse rev-list cat-file describe name-rev merge-base for-each-ref count-objects check-ignore format-patch annotate whatchanged'.split(
    ' ',
  ),
)

const JOINING =
  'verbose quiet stat no-stat summary no-edit edit message= file= strategy= strategy-option= ff no-ff ff-only squash no-commit commit signoff gpg-sign=? no-gpg-sign continue allow-unrelated-histories no-verify log=? ' +
  'rebase=? no-rebase autostash no-autostash all tags no-tags prune depth= unshallow progress onto= root interactive autosquash no-autosquash keep-empty rebase-merges=? committer-date-is-author-date ignore-date mainline= allow-empty keep-redundant-commits'

const VERBS = lossesTable(
  `
clean: -dfinqxX -e= force interactive dry-run quiet exclude= | unknown unless n dry-run
reset: -qN soft mixed hard merge keep quiet no-quiet intent-to-add refresh no-refresh | moves
checkout: -qftdl -b= quiet force track=? no-track detach orphan= ours theirs guess no-guess progress no-progress | checkout
switch: -qftd -c= quiet force discard-changes track=? no-track detach create= orphan= guess no-guess progress no-progress | forces
restore: -qSW -s= quiet staged worktree source= ours theirs progress no-progress ignore-unmerged | restores
rm: -fnrq force dry-run cached quiet ignore-unmatch | forces deletes unless cached n dry-run
mv: -fknv force dry-run verbose | forces overwrites unless n dry-run
stash: -uakqpS -m= include-untracked all keep-index no-keep-index quiet message= staged index patch stat | optional push save list show apply pop branch create
branch: -arvlmdtcqu all remotes verbose list show-current move copy delete track=? no-track set-upstream-to= unset-upstream edit-description sort= format= contains=? no-contains=? merged=? no-merged=? points-at= quiet color=? no-color column=? abbrev=? | nothing
tag: -alsnv -mFu= -<n> annotate list sign message= file= sort= format= contains=? merged=? points-at= verify column=? no-sign | nothing
worktree: -dfbqv detach force quiet track guess-remote checkout no-checkout lock reason= porcelain verbose orphan | verbs list add lock unlock move prune repair
submodule: -q -bj= quiet init recursive remote depth= branch= name= jobs= progress cached | optional status init update add sync summary set-url set-branch absorbgitdirs
reflog: -n -<n> all date= oneline format= pretty=? | reflog
gc: -q auto aggressive quiet no-prune | nothing
apply: -vqRN3 -pC= check stat numstat summary cached index 3way verbose quiet reverse recount intent-to-add whitespace= ignore-whitespace ignore-space-change exclude= include= directory= allow-empty | resets unless check stat numstat summary cached
bundle: -q quiet all progress | bundle
archive: -lv -o= -<n> format= output= prefix= list verbose worktree-attributes add-file= | archive
merge: -vqnse -msXF= ${JOINING} | nothing
pull: -vqnsar4 -sXj= ${JOINING} | nothing
rebase: -vqifkn -sX= ${JOINING} | nothing
cherry-pick: -vqnexsr -mX= ${JOINING} | nothing
revert: -vqnes -mX= ${JOINING} | nothing
am: -vq3iskc -pC= ${JOINING} | nothing
`,
  {
    /** Untracked files as well, where it moves to another commit. */
    moves: ({ has, operands }, _says, place) =>
      has('hard', 'merge', 'keep')
        ? lost(operands.every((to) => to === 'HEAD') ? 'discards' : 'resets', place)
        : [],
    checkout: ({ has, operands }, _says, place) => {
      if (has('f', 'force')) return lost('resets', place)
      if (has('b', 'orphan')) return []
      if (operands.includes(undefined)) return UNKNOWN
      const named = operands.filter((word) => word !== '-')
      // The first may be a commit, of which nothing is lost.
      return paths(operands.length === 1 ? 'checks' : 'restores', named, place)
    },
    forces: ({ has, operands }, [does], place) =>
      !has('f', 'force', 'discard-changes')
        ? []
        : does === 'deletes'
          ? paths(does, operands, place)
          : does === 'overwrites'
            ? paths(does, operands.slice(-1), place)
            : lost('resets', place),
    restores: ({ has, operands }, _says, place) =>
      has('S', 'staged') && !has('W', 'worktree') ? [] : paths('restores', operands, place),
    optional: ({ operands }, says) =>
      operands.length === 0 || says.includes(operands[0] ?? '') ? [] : UNKNOWN,
    reflog: ({ operands: [verb = 'show'] }) => (/^(expire|delete|drop|write)$/.test(verb) ? UNKNOWN : []),
    bundle: ({ operands: [verb, file] }, _says, place) =>
      verb === 'create' ? paths('overwrites', [file], place) : [],
    archive: ({ values }, _says, place) => paths('overwrites', values('o', 'output'), place),
  },
)

/** Options by which the others run a program or write to a file, also shortened. */
const ACTING: readonly [verbs: RegExp, options: RegExp][] = [
  [/^(bisect|lfs|maintenance)$/, /^run$/],
  [/^(clone|fetch|push|ls-remote)$/, /^--(upl|rece|exe|u$|u=|up$|up=)/],
  [/^clone$/, /^-[a-z]*u/],
  [/^grep$/, /^(-[a-zA-Z]*O|--op)/],
  [/^format-patch$/, /^-o/],
]

export function lossesOfGit(words: readonly ArgWord[]): readonly Loss[] {
  const { place, verb = '', rest, known } = gitCommand(words)
  if (!known) return UNKNOWN
  if (ACTING.some(([verbs, option]) => verbs.test(verb) && rest.some(({ prefix }) => option.test(prefix))))
    return UNKNOWN
  if (KEEPS.has(verb)) return []
  if (PRINTS.has(verb)) return rest.some(mayWrite) ? UNKNOWN : []
  if (!VERBS.has(verb)) return verb === '' ? [] : UNKNOWN
  // An interruption discards resolved conflicts.
  if (
    /^(merge|rebase|am|cherry-pick|revert)$/.test(verb) &&
    rest.length === 1 &&
    /^--(abort|skip|quit)$/.test(rest[0]?.literal ?? '')
  )
    return lost('discards', place)
  const losses = VERBS.losses(verb, rest, place)
  return place === undefined ? losses.map(({ does }) => ({ does, paths: undefined })) : losses
}

function mayWrite({ literal, prefix, loose }: ArgWord): boolean {
  return /^--o(u|=|$)/.test(prefix) || (literal === undefined && loose)
}

export function runsByReading(words: readonly ArgWord[]): readonly Loss[] {
  const { place, verb } = gitCommand(words)
  return verb === 'version' || words[0]?.literal === '--version' ? [] : lost('runs', place)
}

/** Paths as git reads them; a pattern stands for the whole repository. */
function paths(does: Loss['does'], named: readonly (string | undefined)[], place: string): Loss[] {
  return named.flatMap((path) => {
    if (path === undefined) return UNKNOWN
    if (/^:|[*?[\\]/.test(path))
      return lost(does === 'deletes' ? 'deletes' : 'resets', does === 'deletes' ? undefined : place)
    return lost(does, path.startsWith('/') ? path : posix.join(place, path), place)
  })
}

/** Before the verb: options that change nothing, and those with a value. */
const PLAIN =
  /^(-[Pp]|--(no-pager|paginate|no-optional-locks|literal-pathspecs|no-replace-objects|version|help))$/
const VALUED = /^(-C|-c|--git-dir|--work-tree|--namespace)$/

/** `place`: where it runs; undefined: not known. `known`: so are the options before the verb. */
function gitCommand(words: readonly ArgWord[]): {
  place: string | undefined
  verb: string | undefined
  rest: readonly ArgWord[]
  known: boolean
} {
  let place: string | undefined = '.'
  let known = true
  let first = 0
  for (; words[first]?.prefix.startsWith('-') === true; first++) {
    const option = words[first]?.literal ?? ''
    if (PLAIN.test(option)) continue
    if (!VALUED.test(option)) {
      place = undefined
      known &&= /^--(git-dir|work-tree)=/.test(option)
      continue
    }
    const next = words[++first]
    const value = next?.literal
    if (option === '-c') known &&= next?.loose === false && isHarmlessSetting(value ?? `${next.prefix}…`)
    else if (option !== '-C' || place === undefined || value === undefined) place = undefined
    else place = value.startsWith('/') ? value : posix.join(place, value)
  }
  const verb = words[first]
  return {
    place,
    verb: verb?.literal,
    rest: words.slice(first + 1),
    known: known && (verb === undefined || verb.literal !== undefined),
  }
}
