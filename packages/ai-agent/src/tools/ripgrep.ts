/** What the tools that use ripgrep share. It runs in the sandbox, and no shell reads a pattern: the script is ours, the rest are its arguments. */
import { CallFailure } from './call-failure.ts'
import type { CommandResult } from './sandboxed-tool-executor.ts'
import { type PageRoom } from './line-page.ts'
import type { ToolOutcome } from './tool.ts'
import { grouped } from './truncate-output.ts'

/** The same order each time, hidden files too, and neither git's nor our own files. A user's own configuration does not count. */
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
export interface LinePage {
  offset: number
  limit: number
}

/** Exit code of our scripts when lines are left behind the page. */
const MORE = 200

/** Ends with MORE as soon as one line too many comes, which ends the search too. */
const PAGE = `awk -v skip="$1" -v limit="$2" -v room="$3" '
NR <= skip { next }
{ size += length($0) + 1 }
NR > skip + 1 && (NR > skip + limit || size > room) { exit ${MORE} }
{ print }'`

const PAGED_SEARCH = `rg "\${@:4}" | ${PAGE}
ended=("\${PIPESTATUS[@]}")
[ "\${ended[1]}" = ${MORE} ] && exit ${MORE}
exit "\${ended[0]}"`

/** A list of files that match a glob, without those that ignore rules leave out: ripgrep's own globs overrule them. */
const PAGED_FILES = `rg --files "--glob=$4" "\${@:5}" |
awk 'NR == FNR { known[$0]; next } $0 in known' <(rg --files "\${@:5}") - | ${PAGE}
ended=("\${PIPESTATUS[@]}")
[ "\${ended[2]}" = ${MORE} ] && exit ${MORE}
exit "\${ended[0]}"`

/** The command that runs ripgrep with `args` and shows one page of what it prints. */
export function pagedSearch(args: readonly string[], page: LinePage, room: PageRoom): string[] {
  return ['bash', '-c', PAGED_SEARCH, 'search', ...pageArgs(page, room), ...args]
}

/** The command that lists files matching `glob`, one page of them. `args`: more flags and paths for ripgrep. */
export function pagedFiles(glob: string, args: readonly string[], page: LinePage, room: PageRoom): string[] {
  return ['bash', '-c', PAGED_FILES, 'files', ...pageArgs(page, room), glob, ...args]
}

function pageArgs({ offset, limit }: LinePage, room: PageRoom): string[] {
  return [offset, Math.min(limit, room.lines), room.chars].map(String)
}

/** ripgrep's exit codes: 0 found, 1 nothing found, 2 an error, perhaps beside matches. `nothing`: said when there is nothing. */
export function searchOutcome(result: CommandResult, page: LinePage, nothing: string): ToolOutcome {
  const text = result.text.replaceAll(/^\.\//gm, '')
  const info = result.info === undefined ? {} : { outputInfo: result.info }
  if (result.status === 'failed') {
    const forModel = [text, `[${result.message}]`].filter((part) => part !== '').join('\n')
    return { status: 'failed', reason: result.reason, forModel, ...info }
  }
  const code = 'code' in result.exit ? result.exit.code : 2
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
    throw new CallFailure('invalid_arguments', `The pattern cannot be used:\n${text}`)
  }
  if (code > 2) throw new CallFailure('tool_error', `The search did not run: ${text}`)
  return { status: 'completed', forModel: text, exit: result.exit, ...info }
}
