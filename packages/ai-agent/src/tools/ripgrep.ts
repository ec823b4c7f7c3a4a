/**
 * Shared parts of the tools that use ripgrep. It runs in the sandbox, and no shell reads a pattern:
 * the script is ours, the rest are its arguments.
 */
import { ToolError } from './tool-error.ts'
import { spellingsOf } from './name-forms.ts'
import { saidPath } from './quoted-path.ts'
import { WORKSPACE } from './workspace-path.ts'
import { HIDDEN_CLASSES } from '@sandlot/shared/base/quoted-path'
import type { CommandResult } from './sandbox-command/sandboxed-tool-executor.ts'
import { type PageRoom } from './output/line-page.ts'
import type { ToolOutcome } from './tool.ts'
import { grouped } from './output/truncate-output.ts'

/**
 * The same order each time, hidden files too, and neither git's nor our own files. A user's own
 * configuration does not count.
 */
export const SEARCH_FLAGS = [
  '--no-config',
  '--no-require-git',
  '--sort=path',
  '--hidden',
  '--color=never',
  '--glob=!.git',
  '--glob=!/.tool-outputs',
]

/** One page of lines: `offset` lines are left out, at most `limit` are shown. */
interface LinePage {
  offset: number
  limit: number
}

/** The same of a call: what it finds is named as the call named where to look. */
interface CalledPage extends LinePage {
  /** The model's path: absolute, or relative to the workspace. */
  path: string
}

/**
 * Exit codes of our scripts: lines are left behind the page; the path has a symbolic link in it
 * now; it is no file to search.
 */
const MORE = 200
const LINKED = 201
const NO_FILE = 202

/**
 * `$1` is the path below the workspace, which ripgrep would follow wherever it leads, and of which
 * it would wait for a pipe. Resolved again here: what was judged may have been hours ago.
 */
const CHECK_PATH = `at=.; [ "$1" = . ] || at=./$1
[ "$1" = . ] || [ "$(realpath -e -- "$at")" = "$(pwd -P)/$1" ] 2>/dev/null || {
  [ -e "$at" ] || exit ${NO_FILE}; exit ${LINKED}; }
[ -d "$at" ] || [ -f "$at" ] || exit ${NO_FILE}`

/**
 * Reads what ripgrep prints with --null and prints one page of it, every path as `quotePath` has it
 * and every control character of a line as \ooo. Ends with MORE as soon as one line too many comes,
 * which ends the search too.
 */
const PAGER = String.raw`
my ($what, $prefix, $skip, $limit, $room, $known) = @ARGV;
my ($lines, $size) = (0, 0);
my %short = ("\"" => "\\\"", "\\" => "\\\\", "\n" => "\\n", "\r" => "\\r", "\t" => "\\t");
sub octal { join "", map { sprintf "\\%03o", $_ } unpack "C*", $_[0] }
sub escaped { my ($one) = @_; return $short{$one} if $short{$one}; utf8::encode($one); octal($one) }
sub quoted {
  my ($name) = @_;
  $name =~ s{^\./}{};
  $name = $prefix . $name;
  my $text = $name;
  if (utf8::decode($text)) {
    return $name unless $text =~ /["\\HIDDEN]/;
    $text =~ s/(["\\HIDDEN])/escaped($1)/ge;
    utf8::encode($text);
    return "\"$text\"";
  }
  $name =~ s/([^ !#-\[\]-~])/$short{$1} || octal($1)/ge;
  return "\"$name\"";
}
sub plain { my ($line) = @_; $line =~ s/\r+$//; $line =~ s/([\0-\x08\x0b-\x1f\x7f])/octal($1)/ge; $line }
sub shown {
  my ($line) = @_;
  return if ++$lines <= $skip;
  $size += length($line) + 1;
  exit MORE if $lines > $skip + 1 && ($lines > $skip + $limit || $size > $room);
  print $line, "\n";
}
if ($what eq "errors") {
  while (my $line = <STDIN>) { chomp $line; $line =~ s/^(?!rg: |    )/rg: /; print plain($line), "\n" }
} elsif ($what eq "files") {
  local $/ = "\0";
  my %known;
  open my $all, "<", $known or die;
  while (<$all>) { chomp; $known{$_} = 1 }
  while (<STDIN>) { chomp; shown(quoted($_)) if $known{$_} }
} else {
  my $record = "";
  while (my $line = <STDIN>) {
    $record .= $line;
    if ($record =~ /\A([^\0]*)\0(\d+[:-])([^\n]*)\n\z/s) { my ($name, $at, $text) = ($1, $2, $3);
      my $between = substr($at, -1); shown(quoted($name) . $between . $at . plain($text)) }
    elsif ($record eq "--\n") { shown("--") }
    elsif ($record =~ /\A([^\0]*): ((?:binary file matches|WARNING: stopped searching binary file)[^\n]*)\n\z/s) {
      shown(quoted($1) . ": " . $2) }
    else { next }
    $record = "";
  }
}`
  .replaceAll('HIDDEN', HIDDEN_CLASSES)
  .replaceAll('MORE', String(MORE))

/**
 * Runs `search | pager`, whose errors go through the pager too; what is printed goes to 4, so that
 * bash waits for both.
 */
function paged(search: string, pager: string): string {
  return `${CHECK_PATH}
exec 4>&1
{ ${search} 2>&3 3>&- 4>&- | ${pager} >&4 3>&- 4>&-
ended=("\${PIPESTATUS[@]}")
[ "\${ended[1]}" = ${MORE} ] && exit ${MORE}
exit "\${ended[0]}"
} 3>&1 | perl -e "$2" errors
exit "\${PIPESTATUS[0]}"`
}

/** `$1` path, `$2` the pager, `$3`–`$6` its prefix and page, then ripgrep's arguments. */
const PAGED_SEARCH = paged(`rg --null "\${@:7}" -- "$at"`, `perl -e "$2" lines "\${@:3:4}"`)

/**
 * A list of files that match a glob, without those that ignore rules leave out: ripgrep's own globs
 * overrule them.
 */
const PAGED_FILES = paged(
  `rg --files --null "--glob=$7" "--glob=$8" "--glob=$9" "\${@:10}" -- "$at"`,
  `perl -e "$2" files "\${@:3:4}" <(rg --files --null "\${@:10}" -- "$at" 2>/dev/null)`,
)

/** The command that runs ripgrep with `args` on `path` and shows one page of what it finds. */
export function pagedSearch(
  path: string,
  args: readonly string[],
  page: CalledPage,
  room: PageRoom,
): string[] {
  return ['bash', '-c', PAGED_SEARCH, 'search', path || '.', PAGER, ...pageArgs(page, room), ...args]
}

/**
 * The command that lists files below `path` that match `glob`, one page of them. `args`: more flags
 * for ripgrep.
 */
export function pagedFiles(
  path: string,
  glob: string,
  args: readonly string[],
  page: CalledPage,
  room: PageRoom,
): string[] {
  const globs = spellingsOf(glob)
  return ['bash', '-c', PAGED_FILES, 'files', path || '.', PAGER, ...pageArgs(page, room), ...globs, ...args]
}

function pageArgs({ path, offset, limit }: CalledPage, room: PageRoom): string[] {
  const prefix = path.startsWith('/') ? `${WORKSPACE}/` : ''
  return [prefix, offset, Math.min(limit, room.lines), room.chars].map(String)
}

/**
 * ripgrep's exit codes: 0 found, 1 nothing found, 2 an error, perhaps beside matches. `nothing`:
 * said when there is nothing.
 */
export function searchOutcome(
  result: CommandResult,
  path: string,
  page: LinePage,
  nothing: string,
): ToolOutcome {
  const { text } = result
  const info = result.info === undefined ? {} : { outputInfo: result.info }
  if (result.status === 'failed') {
    const forModel = [text, `[${result.message}]`].filter((part) => part !== '').join('\n')
    return { status: 'failed', reason: result.reason, forModel, ...info }
  }
  const code = 'code' in result.exit ? result.exit.code : 2
  if (code === LINKED)
    throw new ToolError(
      'denied',
      `${saidPath(path)} leads through a symbolic link that was put there meanwhile. Nothing was searched; make the call again.`,
    )
  if (code === NO_FILE)
    throw new ToolError('tool_error', `${saidPath(path)} is neither a directory nor a regular file.`)
  if (code === MORE) {
    const shown = text.split('\n').length
    const next = page.offset + shown
    const notice = `[There is more: these are results ${grouped(page.offset + 1)}–${grouped(next)}. Go on with offset ${next}, or look for less.]`
    return { status: 'completed', forModel: `${text}\n${notice}`, exit: { code: 0 }, ...info }
  }
  if (code === 1 || (code === 0 && text === '')) {
    const forModel = page.offset === 0 ? nothing : `There are no more than ${grouped(page.offset)} results.`
    return { status: 'completed', forModel, exit: { code: 0 } }
  }
  if (code === 2 && /^(rg: )?(regex parse error|error parsing glob|the literal)/m.test(text)) {
    throw new ToolError('invalid_arguments', `The pattern cannot be used:\n${text}`)
  }
  if (code > 2) throw new ToolError('tool_error', `The search did not run: ${text}`)
  return { status: 'completed', forModel: text, exit: result.exit, ...info }
}
