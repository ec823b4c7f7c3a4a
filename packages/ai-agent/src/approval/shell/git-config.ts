/**
 * Keys of git's configuration that can name no program, and the check that a repository has no
 * others. A key that is not on the list, of whatever version of git, makes its repository prove
 * nothing.
 */

/** `section.name`; a name is a pattern, and `section.*.name` has any subsection. */
const HARMLESS: Readonly<Record<string, string>> = {
  core:
    'repositoryformatversion filemode bare logallrefupdates ignorecase precomposeunicode symlinks autocrlf eol safecrlf ' +
    'abbrev quotepath whitespace untrackedcache preloadindex trustctime checkstat compression loosecompression ' +
    'bigfilethreshold sharedrepository worktree excludesfile attributesfile commitgraph multipackindex longpaths ' +
    'protecthfs protectntfs commentchar warnambiguousrefs hidedotfiles splitindex sparsecheckout sparsecheckoutcone',
  extensions: 'worktreeconfig objectformat compatobjectformat refstorage noop',
  user: 'name email signingkey useconfigonly',
  author: 'name email',
  committer: 'name email',
  init: 'defaultbranch',
  safe: 'directory barerepository',
  advice: '[a-z]+',
  alias: '.+',
  color: '[a-z.]+',
  column: '[a-z]+',
  i18n: 'commitencoding logoutputencoding',
  push: 'default autosetupremote followtags',
  pull: 'rebase ff',
  fetch: 'prune prunetags parallel writecommitgraph',
  rebase: 'autostash autosquash updaterefs',
  merge: 'conflictstyle ff renames log',
  rerere: 'enabled autoupdate',
  commit: 'gpgsign verbose cleanup',
  tag: 'gpgsign sort',
  branch: 'sort autosetupmerge autosetuprebase',
  'branch.*': 'remote merge rebase description pushremote vscode-merge-base gh-merge-base',
  'remote.*': 'url fetch pushurl push tagopt prune mirror skipdefaultupdate gh-resolved',
  'submodule.*': 'url active branch',
  http: '[a-z]+',
  'http.*': '[a-z]+',
  status: 'showuntrackedfiles branch short renames relativepaths showstash',
  log: 'date decorate abbrevcommit follow mailmap',
  diff: 'algorithm renames renamelimit mnemonicprefix noprefix colormoved colormovedws context interhunkcontext wserrorhighlight indentheuristic relative',
  'diff.*': 'xfuncname wordregex binary',
  grep: 'linenumber patterntype extendedregexp column',
  gc: 'auto autodetach autopacklimit pruneexpire',
  index: 'version threads sparse',
  pack: 'threads window depth windowmemory',
  feature: 'manyfiles experimental',
  maintenance: 'auto strategy',
}

/** Their programs are none that reading starts. */
const UNREAD = String.raw`core\.editor|sequence\.editor|credential\.helper`

const KEYS = Object.entries(HARMLESS)
  .map(
    ([section, names]) =>
      `${section.replace('*', '.+').replace('.', String.raw`\.`)}\\.(${names.replaceAll(' ', '|')})`,
  )
  .join('|')

const HARMLESS_SETTING = new RegExp(
  String.raw`^(?!core\.worktree=)(?:(?:${KEYS})(?:=|$)|[^=]*=(?:true|false|cat|:|always|never|\d*)$)`,
  'i',
)

/**
 * True if a setting of `git -c` is harmless: it names no program that may lose something, and no
 * other place.
 */
export function isHarmlessSetting(setting: string): boolean {
  return HARMLESS_SETTING.test(setting)
}

/** Set by git’s user without naming a program or a place. */
const VARIABLES =
  'CONFIG_COUNT|CONFIG_(KEY|VALUE)_[0-9]+|NO_LAZY_FETCH|ALLOW_PROTOCOL|TERMINAL_PROMPT|OPTIONAL_LOCKS|SSL_[A-Z]+|(AUTHOR|COMMITTER)_(NAME|EMAIL|DATE)|(SEQUENCE_)?EDITOR|MERGE_AUTOEDIT'

/**
 * For bash: `plain_environment` and `plain_config FOLDER` succeed where git there is known to run
 * no program: where the environment points it nowhere, and where the repository, what it includes
 * and its submodules have harmless keys only. The system’s settings are the image’s.
 */
export const PLAIN_CONFIG = String.raw`
plain_environment() { ! compgen -e | grep '^GIT_' | grep -qvE '^GIT_(${VARIABLES})$'; }
plain_config() {
  local keys top path depth=$2
  [ -d "$1" ] || return 0
  [ "$((depth))" -lt 5 ] || return 1
  keys=$(GIT_CONFIG_COUNT=0 GIT_CONFIG_NOSYSTEM=1 git -C "$1" config --list --name-only 2>/dev/null) || return 1
  ! grep -qvE '^(${KEYS}|${UNREAD})$' <<<"$keys" || [ -z "$keys" ] || return 1
  top=$(git -C "$1" rev-parse --show-toplevel 2>/dev/null) || return 0
  while IFS= read -r -d '' path; do
    [ ! -e "$top/$path/.git" ] || plain_config "$top/$path" $((depth + 1)) || return 1
  done < <(git -C "$top" ls-files --stage -z 2>/dev/null | sed -zn 's/^160000 [^\t]*\t//p')
}
`
