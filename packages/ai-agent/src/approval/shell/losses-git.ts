/**
 * What git loses by its words. It keeps what is committed; these throw away what is not, or what
 * only git still has. A command, or an option of one that may lose something, that is not listed
 * may lose anything.
 */
import { posix } from 'node:path'
import { type Arguments, readArguments } from './arguments.ts'
import { type Loss, UNKNOWN, lost } from './loss.ts'
import type { Options } from './options.ts'
import type { ArgWord } from './words.ts'

/** They refuse to lose what is not committed, or only add to what git has, with any option. */
const KEEPS = new Set(
  (
    'add commit push fetch clone init remote config help version status stage notes lfs bisect maintenance sparse-checkout show-ref show-branch ' +
    'annotate whatchanged fsck verify-commit verify-tag request-pull cherry var check-attr check-mailmap check-ref-format mktree hash-object write-tree commit-tree repack pack-refs'
  ).split(' '),
)
/** They print, and write where an option names a file. */
const PRINTS = new Set(
  'log show diff diff-tree diff-index diff-files range-diff shortlog blame grep ls-files ls-tree ls-remote rev-parse rev-list cat-file describe name-rev merge-base for-each-ref count-objects check-ignore format-patch'.split(
    ' ',
  ),
)

interface Verb {
  options: Options
  loses: (given: Arguments, place: string) => readonly Loss[]
}

const JOINING =
  'verbose quiet stat no-stat summary no-edit edit message= file= strategy= strategy-option= ff no-ff ff-only squash no-commit commit signoff gpg-sign=? no-gpg-sign continue allow-unrelated-histories no-verify log=? ' +
  'rebase=? no-rebase autostash no-autostash all tags no-tags prune depth= unshallow progress onto= root interactive autosquash no-autosquash keep-empty rebase-merges=? committer-date-is-author-date ignore-date mainline= allow-empty keep-redundant-commits'

/** They refuse to lose what is not committed. */
function joins(flags: string, valued: string): Verb {
  return { options: { flags: `vq${flags}`, valued, long: JOINING }, loses: () => [] }
}

const VERBS: Readonly<Record<string, Verb>> = {
  clean: {
    options: { flags: 'dfinqxX', valued: 'e', long: 'force interactive dry-run quiet exclude=' },
    loses: ({ has }) => (has('n', 'dry-run') ? [] : UNKNOWN),
  },
  reset: {
    options: {
      flags: 'qN',
      long: 'soft mixed hard merge keep quiet no-quiet intent-to-add refresh no-refresh',
    },
    loses: ({ has, operands: [to = 'HEAD'] }, place) =>
      has('hard', 'merge', 'keep') ? lost(to === 'HEAD' ? 'discards' : 'resets', place) : [],
  },
  checkout: {
    options: {
      flags: 'qftdl',
      valued: 'b',
      long: 'quiet force track=? no-track detach orphan= ours theirs guess no-guess progress no-progress',
    },
    loses: (given, place) => {
      const { has, operands } = given
      if (has('f', 'force')) return lost('resets', place)
      if (has('b', 'orphan')) return []
      if (operands.includes(undefined)) return UNKNOWN
      const [only] = operands
      if (operands.length === 1 && only !== undefined && only !== '-') return paths('checks', operands, place)
      // The first may be a commit, of which nothing is lost.
      return paths(
        'restores',
        operands.filter((word) => word !== '-'),
        place,
      )
    },
  },
  switch: {
    options: {
      flags: 'qftd',
      valued: 'c',
      long: 'quiet force discard-changes track=? no-track detach create= orphan= guess no-guess progress no-progress',
    },
    loses: ({ has }, place) => (has('f', 'force', 'discard-changes') ? lost('resets', place) : []),
  },
  restore: {
    options: {
      flags: 'qSW',
      valued: 's',
      long: 'quiet staged worktree source= ours theirs progress no-progress ignore-unmerged',
    },
    loses: ({ has, operands }, place) =>
      has('S', 'staged') && !has('W', 'worktree') ? [] : paths('restores', operands, place),
  },
  rm: {
    options: { flags: 'fnrq', long: 'force dry-run cached quiet ignore-unmatch' },
    loses: ({ has, operands }, place) =>
      has('f', 'force') && !has('cached', 'n', 'dry-run') ? paths('deletes', operands, place) : [],
  },
  mv: {
    options: { flags: 'fknv', long: 'force dry-run verbose' },
    loses: ({ has, operands }, place) =>
      has('f', 'force') ? paths('overwrites', operands.slice(-1), place) : [],
  },
  stash: {
    options: {
      flags: 'uakqpS',
      valued: 'm',
      long: 'include-untracked all keep-index no-keep-index quiet message= staged index patch stat',
    },
    loses: ({ operands: [verb = 'push'] }) =>
      /^(push|save|list|show|apply|pop|branch|create)$/.test(verb) ? [] : UNKNOWN,
  },
  branch: {
    options: {
      flags: 'arvlmdtcqu',
      valued: '',
      long: 'all remotes verbose list show-current move copy delete track=? no-track set-upstream-to= unset-upstream edit-description sort= format= contains=? no-contains=? merged=? no-merged=? points-at= quiet color=? no-color column=? abbrev=?',
    },
    loses: () => [],
  },
  tag: {
    options: {
      flags: 'alsnv',
      valued: 'mFu',
      numbers: true,
      long: 'annotate list sign message= file= sort= format= contains=? merged=? points-at= verify column=? no-sign',
    },
    loses: () => [],
  },
  worktree: {
    options: {
      flags: 'dfbqv',
      valued: 'B',
      long: 'detach force quiet track guess-remote checkout no-checkout lock reason= porcelain verbose orphan',
    },
    loses: ({ has, operands: [verb] }) =>
      verb === undefined ||
      !/^(list|add|lock|unlock|move|prune|repair)$/.test(verb) ||
      (verb !== 'add' && has('f', 'force')) ||
      has('B')
        ? UNKNOWN
        : [],
  },
  submodule: {
    options: {
      flags: 'q',
      valued: 'bj',
      long: 'quiet init recursive remote depth= branch= name= jobs= progress cached',
    },
    loses: ({ operands: [verb = 'status'] }) =>
      /^(status|init|update|add|sync|summary|set-url|set-branch|absorbgitdirs)$/.test(verb) ? [] : UNKNOWN,
  },
  reflog: {
    options: { flags: 'n', numbers: true, long: 'all date= oneline format= pretty=?' },
    loses: ({ operands: [verb = 'show'] }) => (/^(expire|delete|drop|write)$/.test(verb) ? UNKNOWN : []),
  },
  gc: { options: { flags: 'q', long: 'auto aggressive quiet no-prune' }, loses: () => [] },
  apply: {
    options: {
      flags: 'vqRN3',
      valued: 'pC',
      long: 'check stat numstat summary cached index 3way verbose quiet reverse recount intent-to-add whitespace= ignore-whitespace ignore-space-change exclude= include= directory= allow-empty',
    },
    loses: ({ has }, place) =>
      has('check', 'stat', 'numstat', 'summary', 'cached') ? [] : lost('resets', place),
  },
  bundle: {
    options: { flags: 'q', long: 'quiet all progress' },
    loses: ({ operands: [verb, file] }, place) =>
      verb === 'create' ? paths('overwrites', [file], place) : [],
  },
  archive: {
    options: {
      flags: 'lv',
      valued: 'o',
      numbers: true,
      long: 'format= output= prefix= list verbose worktree-attributes add-file=',
    },
    loses: ({ values }, place) => paths('overwrites', values('o', 'output'), place),
  },
  merge: joins('nse', 'msXF'),
  pull: joins('nsar4', 'sXj'),
  rebase: joins('ifkn', 'sX'),
  'cherry-pick': joins('nexsr', 'mX'),
  revert: joins('nes', 'mX'),
  am: joins('3iskc', 'pC'),
}

export function lossesOfGit(words: readonly ArgWord[]): readonly Loss[] {
  const { place, verb = '', rest, known } = gitCommand(words)
  if (!known) return UNKNOWN
  if (KEEPS.has(verb)) return rest[0]?.literal === 'run' ? UNKNOWN : []
  if (PRINTS.has(verb))
    return rest.some(
      ({ literal, prefix, loose }) =>
        /^--o(u|=|$)/.test(prefix) ||
        (verb === 'format-patch' && prefix.startsWith('-o')) ||
        (literal === undefined && loose),
    )
      ? UNKNOWN
      : []
  const form = Object.hasOwn(VERBS, verb) ? VERBS[verb] : undefined
  if (form === undefined) return verb === '' ? [] : UNKNOWN
  const given = readArguments(form.options, rest, true)
  // What interrupts these throws away what was resolved.
  if (
    given === undefined &&
    /^(merge|rebase|am|cherry-pick|revert)$/.test(verb) &&
    rest.length === 1 &&
    /^--(abort|skip|quit)$/.test(rest[0]?.literal ?? '')
  )
    return lost('discards', place)
  return given === undefined
    ? UNKNOWN
    : place === undefined
      ? form.loses(given, '.').map(({ does }) => ({ does, paths: undefined }))
      : form.loses(given, place)
}

export function runsByReading(words: readonly ArgWord[]): readonly Loss[] {
  const { place, verb } = gitCommand(words)
  return verb === 'version' || words[0]?.literal === '--version' ? [] : lost('runs', place)
}

/** Paths as git reads them; a pattern stands for the whole repository. */
function paths(does: Loss['does'], named: Arguments['operands'], place: string): Loss[] {
  return named.flatMap((path) => {
    if (path === undefined) return UNKNOWN
    if (/^:|[*?[\\]/.test(path))
      return lost(does === 'deletes' ? 'deletes' : 'resets', does === 'deletes' ? undefined : place)
    return lost(does, path.startsWith('/') ? path : posix.join(place, path), place)
  })
}

const VALUED = new Set(['-C', '-c', '--git-dir', '--work-tree', '--namespace', '--config-env'])
const NO_PLACE = new Set([
  '-c',
  '-P',
  '-p',
  '--no-pager',
  '--paginate',
  '--no-optional-locks',
  '--literal-pathspecs',
  '--no-replace-objects',
])

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
    const option = words[first]?.literal
    known &&=
      option !== undefined &&
      (NO_PLACE.has(option) || VALUED.has(option) || /^--(git-dir|work-tree|version|help)(=|$)/.test(option))
    if (option !== '-C' && !NO_PLACE.has(option ?? '')) place = undefined
    if (!VALUED.has(option ?? '')) continue
    const to = words[++first]?.literal
    if (option === '-C')
      place =
        place === undefined || to === undefined ? undefined : to.startsWith('/') ? to : posix.join(place, to)
  }
  const verb = words[first]
  return {
    place,
    verb: verb?.literal,
    rest: words.slice(first + 1),
    known: known && (verb === undefined || verb.literal !== undefined),
  }
}
