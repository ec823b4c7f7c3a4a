/**
 * Asks git in the sandbox whether it holds the files that a call would delete or overwrite. A file
 * that is not committed as it is, is lost; so is any in a repository whose configuration may run
 * programs, which proves nothing.
 */
import { randomBytes } from 'node:crypto'
import type { Sandbox } from '@sandlot/sandbox/sandbox'
import { READS_ONLY } from './shell/git.ts'
import { PLAIN_CONFIG } from './shell/git-config.ts'
import { inSandbox } from './files.ts'
import { type Loss, lossKey } from './shell/loss.ts'

/** Files that are looked at for one call; more are not held. */
const MOST_PATHS = 100
const TIMEOUT_MS = 10_000
const OUTPUT_BYTES = 16 * 1024

/**
 * Prints the number of each path that git does not hold. Its arguments are the workspace, then for
 * each path what happens to it, the path, and where to or where git runs. Only the workspace
 * outlives the sandbox, so nothing elsewhere counts. Flags other than H (assume-unchanged,
 * skip-worktree) hide changes from git.
 */
const SCRIPT = String.raw`
${PLAIN_CONFIG}
plain_environment
plain=$?
unset GIT_DIR GIT_WORK_TREE GIT_INDEX_FILE GIT_OBJECT_DIRECTORY GIT_COMMON_DIR GIT_NAMESPACE
quiet_git() { git --no-optional-locks --literal-pathspecs "$@" 2>/dev/null; }
plain_folder() {
  [ "$1" = "$last" ] || { plain_config "$1"; verdict=$?; last=$1; }
  return "$verdict"
}
# Nothing is changed in it, or no longer there: restoring that loses nothing.
unchanged() {
  local status
  status=$(quiet_git -C "$1" status --porcelain --no-renames "${'$'}{@:2}") || return 1
  ! grep -qv '^ D ' <<<"$status" || [ -z "$status" ]
}
committed() {
  local place=$1 path=$2
  [ -d "$place" ] || return 0
  quiet_git -C "$place" rev-parse --git-dir >/dev/null || return 0
  # What git does not track it may have in another commit.
  if [ -e "$path" ] && [ ! -d "$path" ]; then
    quiet_git -C "$place" ls-files --error-unmatch -- "$path" >/dev/null || return 1
  fi
  plain_folder "$place" && unchanged "$place" --untracked-files=no -- "$path"
}
unpacked() {
  local into=$1 name count=0
  [ -d "$into" ] || return 0
  while IFS= read -r name; do
    [ -n "$name" ] || continue
    case /$name/ in */../* | //*) return 1 ;; esac
    [ -e "$into/$name" ] || [ -L "$into/$name" ] || continue
    [ "$name" != "${'$'}{name%/}" ] && [ -d "$into/$name" ] && continue
    [ "$((count += 1))" -le 50 ] && held overwrites "$into/$name" || return 1
  done
}
held() {
  local path=$2 folder gitdir tracked status into
  case $1 in
    runs) [ "$plain" = 0 ] && plain_config "$path"; return ;;
    untars)
      status=$(tar --list --force-local --quoting-style=literal --file "$path" 2>/dev/null) || [ ! -e "$path" ] || return 1
      unpacked "$3" <<<"$status"
      return
      ;;
    unzips)
      status=$(unzip -Z1 "$path" 2>/dev/null) || [ ! -e "$path" ] || return 1
      unpacked "$3" <<<"$status"
      return
      ;;
    checks)
      [ -e "$path" ] || [ -L "$path" ] || return 0
      committed "$3" "$(realpath -m -- "$(dirname -- "$path")")/$(basename -- "$path")"
      return
      ;;
    restores)
      committed "$3" "$(realpath -m -- "$(dirname -- "$path")")/$(basename -- "$path")"
      return
      ;;
    moves)
      into=$(realpath -m -- "$3") || return 1
      case $into/ in "$workspace"/*) return 0 ;; esac
      ;;
  esac
  case $1 in
    overwrites | replaces) path=$(realpath -m -- "$path") || return 1 ;;
    *) path=$(realpath -m -- "$(dirname -- "$path")")/$(basename -- "$path") || return 1 ;;
  esac
  case $path in */. | */..) path=$(realpath -m -- "$path") ;; esac
  case $path/ in
    "$workspace"/*) ;;
    # Above the workspace is all of it.
    *) [ "$1" != replaces ] && case $workspace/ in "$path"/*) return 1 ;; esac; return 0 ;;
  esac
  if [ "$1" = discards ] || [ "$1" = resets ]; then
    [ -d "$path" ] || return 0
    quiet_git -C "$path" rev-parse --git-dir >/dev/null || return 0
    plain_folder "$path" || return 1
    [ "$1" = resets ] && { unchanged "$path" --untracked-files=all; return; }
    unchanged "$path" --untracked-files=no
    return
  fi
  [ -e "$path" ] || [ -L "$path" ] || return 0
  if [ -d "$path" ] && [ ! -L "$path" ]; then
    [ "$1" = replaces ] && return 0
    [ -n "$(find "$path" ! -type d -print -quit)" ] || return 0
  fi
  folder=$(dirname -- "$path")
  plain_folder "$folder" || return 1
  gitdir=$(quiet_git -C "$folder" rev-parse --absolute-git-dir) || return 1
  case $(realpath -m -- "$gitdir")/ in "$path"/*) return 1 ;; esac
  tracked=$(quiet_git -C "$folder" ls-files -v -s -- "$path") || return 1
  [ -n "$tracked" ] || return 1
  grep -qv '^H \(100644\|100755\|120000\) ' <<<"$tracked" && return 1
  status=$(quiet_git -C "$folder" status --porcelain --ignored --untracked-files=all -- "$path") || return 1
  [ -z "$status" ]
}
workspace=$(realpath -m -- "$1")
shift
at=0
last=
while [ $# -gt 2 ]; do
  held "$1" "$2" "$3" || echo "$at"
  shift 3
  at=$((at + 1))
done
echo end
`

/** The base of the paths of a call. */
interface Place {
  /** Absent: where the shell of this session stands. */
  cwd?: string | undefined
  sessionId: string
  /** The folder in which that shell starts; absent: the workspace. */
  home?: string | undefined
}

/** Keys of the losses that git does not make good. What cannot be found out is lost. */
export async function lostToGit(
  sandbox: Sandbox,
  losses: readonly Loss[],
  { cwd, sessionId, home }: Place,
): Promise<Set<string>> {
  const asked = losses.flatMap((loss) =>
    (loss.paths ?? []).map((path) => ({
      key: lossKey(loss),
      says: [loss.does, ...[path, loss.into ?? ''].map((named) => inSandbox(named, sandbox))],
    })),
  )
  const all = new Set(losses.map(lossKey))
  if (asked.length > MOST_PATHS) return all
  const running = await sandbox.run({
    id: randomBytes(16).toString('hex'),
    command: ['bash', '-c', SCRIPT, 'held', sandbox.workspace, ...asked.flatMap(({ says }) => says)],
    ...(cwd === undefined
      ? { session: sessionId, home: home && inSandbox(home, sandbox) }
      : { cwd: inSandbox(cwd, sandbox) }),
    env: { ...READS_ONLY, BASH_ENV: '' },
    timeoutMs: TIMEOUT_MS,
    policy: { kind: 'limit', bytes: OUTPUT_BYTES },
    autoAcknowledge: true,
  })
  let printed = ''
  const decoder = new TextDecoder()
  for await (const { stream, data } of running.output)
    if (stream === 'stdout') printed += decoder.decode(data, { stream: true })
  await running.exit
  const lines = printed.trimEnd().split('\n')
  if (lines.pop() !== 'end') return all
  const unknown = losses.filter(({ paths }) => paths === undefined).map(lossKey)
  return new Set([...unknown, ...lines.flatMap((line) => asked[Number(line)]?.key ?? [])])
}
