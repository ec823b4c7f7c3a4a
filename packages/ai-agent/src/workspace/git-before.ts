/**
 * Content of git-tracked files before a prompt, also where they differed from the last commit: the
 * state is written as a tree into a separate folder outside of the repository, which stays
 * unchanged. Only files that differ from the index are read, and none of a repository whose
 * configuration may run programs.
 */
import { newCommandId } from '@sandlot/sandbox/collect'
import type { Sandbox } from '@sandlot/sandbox/sandbox'
import { READS_ONLY } from '../approval/shell/git.ts'
import { PLAIN_CONFIG } from '../approval/shell/git-config.ts'

export interface GitBefore {
  /** The contents of these files of the workspace, of those that git tracked. Never rejects. */
  read(paths: readonly string[]): Promise<Map<string, Uint8Array>>
  /** Removes the folder. Never rejects. */
  forget(): Promise<void>
}

const TIMEOUT_MS = 4_000
/** The most bytes of a written file, so that a large one does not fill the memory that /tmp is. */
const MOST_WRITTEN_BYTES = 16 * 1024 * 1024
const MOST_READ_BYTES = 8 * 1024 * 1024

const ENTER = `${PLAIN_CONFIG}
enter() {
  cd "./$1" && plain_config . || return
  store=$(git rev-parse --path-format=absolute --git-path objects) || return
  index=$(git rev-parse --path-format=absolute --git-path index) || return
  export GIT_INDEX_FILE="$2/index" GIT_OBJECT_DIRECTORY="$2/objects" GIT_ALTERNATE_OBJECT_DIRECTORIES="$store"
}`
const TAKE = `${ENTER}
umask 077
folder=$1; shift; n=0
for repository; do
  at="$folder/$n"; n=$((n + 1))
  (enter "$repository" "$at" && mkdir -p "$at/objects" && { [ ! -e "$index" ] || cp -p "$index" "$at/index"; } &&
    # A hook of a submodule is no configuration: none is looked into.
    git ls-files --stage -z | sed -zn 's/^160000 \\([^ ]*\\) [0-3]/0 \\1/p' | git update-index -z --index-info &&
    git add -u . && git write-tree > "$at/tree") 2>/dev/null
done`
const READ = `${ENTER}
at=$1; repository=$2; shift 2
tree=$(cat "$at/tree") && enter "$repository" "$at" || exit
for path; do printf '%s:%s\\n' "$tree" "$path"; done | git cat-file --batch`

/** `repositories`: directories of the workspace. Rejects with a `SandboxError`. */
export async function gitBefore(sandbox: Sandbox, repositories: readonly string[]): Promise<GitBefore> {
  const folder = `/tmp/.sandlot-changes-${newCommandId()}`
  await run(sandbox, ['bash', '-c', TAKE, 'changes', folder, ...repositories.map(named)])
  const settled = async (work: Promise<unknown>): Promise<void> => void (await Promise.allSettled([work]))
  return {
    async read(paths) {
      const contents = new Map<string, Uint8Array>()
      for (const [n, own] of byRepository(repositories, paths).entries()) {
        if (own.length === 0) continue
        const words = own.map(({ inside }) => inside)
        const reading = [
          'bash',
          '-c',
          READ,
          'changes',
          `${folder}/${n}`,
          named(repositories[n] ?? ''),
          ...words,
        ]
        await settled(
          run(sandbox, reading).then((printed) => {
            for (const [at, content] of blobs(printed, words.length).entries())
              if (content !== undefined) contents.set(own[at]?.path ?? '', content)
          }),
        )
      }
      return contents
    },
    forget: () => settled(run(sandbox, ['rm', '-rf', folder])),
  }
}

const named = (repository: string): string => (repository === '' ? '.' : repository)

/** Each path with the innermost repository that it is in, and its path there. */
function byRepository(
  repositories: readonly string[],
  paths: readonly string[],
): { path: string; inside: string }[][] {
  const found: { path: string; inside: string }[][] = repositories.map(() => [])
  const isIn = (path: string, repository: string): boolean =>
    repository === '' || path.startsWith(`${repository}/`)
  for (const path of paths) {
    // The list of names has one a line.
    if (path.includes('\n')) continue
    const inner = repositories
      .filter((repository) => isIn(path, repository))
      .toSorted((a, b) => b.length - a.length)[0]
    if (inner === undefined) continue
    const inside = inner === '' ? path : path.slice(inner.length + 1)
    found[repositories.indexOf(inner)]?.push({ path, inside })
  }
  return found
}

/**
 * The output of `git cat-file --batch`: of each object a line, and after the line of a blob its
 * bytes.
 */
function blobs(printed: Buffer, count: number): (Uint8Array | undefined)[] {
  let at = 0
  return Array.from({ length: count }, () => {
    const end = printed.indexOf('\n', at)
    if (end < 0) return undefined
    const [, type, size] = printed.toString('latin1', at, end).split(' ')
    at = end + 1
    // “… missing”: git did not track it.
    const bytes = Number(size)
    if ((type !== 'blob' && type !== 'tree') || !Number.isSafeInteger(bytes)) return undefined
    const content = printed.subarray(at, at + bytes)
    at += bytes + 1
    return type === 'blob' && content.length === bytes ? content : undefined
  })
}

async function run(sandbox: Sandbox, command: readonly string[]): Promise<Buffer> {
  const running = await sandbox.run({
    id: newCommandId(),
    command,
    env: READS_ONLY,
    timeoutMs: TIMEOUT_MS,
    policy: { kind: 'limit', bytes: MOST_READ_BYTES },
    limits: { fileBytes: MOST_WRITTEN_BYTES, cpuSeconds: TIMEOUT_MS / 1000 },
    merge: false,
    autoAcknowledge: true,
  })
  const pieces: Uint8Array[] = []
  for await (const { stream, data } of running.output) if (stream === 'stdout') pieces.push(data)
  await running.exit
  return Buffer.concat(pieces)
}
