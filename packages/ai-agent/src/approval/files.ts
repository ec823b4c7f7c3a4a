/** Paths of the workspace, and the files whose change is more than an edit. */
import { posix } from 'node:path'

const WORKSPACE = '/workspace'

/** Absolute and without `.`, `..` and double slashes. Relative paths begin at the workspace. */
export function absolutePath(path: string): string {
  return posix.resolve(WORKSPACE, path)
}

/** As commands see this path: a backend without containers has the workspace under another name. */
export function inSandbox(path: string, { workspace }: { workspace: string }): string {
  const below = posix.relative(WORKSPACE, path)
  return path.startsWith('/') && !below.startsWith('..') ? posix.join(workspace, below) : path
}

/** Sandlot's own files: stored outputs and shell states. No rule allows a change of them. */
export function isOwnFile(path: string): boolean {
  return /^\/workspace\/\.tool-outputs(\/|$)/.test(absolutePath(path))
}

/** The file with the agent's instructions for every session. */
export function isInstructionsFile(path: string): boolean {
  return absolutePath(path) === `${WORKSPACE}/AGENTS.md`
}

/**
 * Files that configure programs: git's own (a pager, a hook or a file-system monitor is a command
 * line there), the shell's start-up files, keys, and the first folders in PATH. HOME is the
 * workspace. An edit of one decides what later commands run. Guarding them makes `git status` a
 * read-only command.
 */
export function isOrdersFile(path: string): boolean {
  const absolute = absolutePath(path)
  const names = absolute.split('/')
  const name = names.at(-1) ?? ''
  // `HEAD` makes any folder a repository with a configuration of its own.
  if (names.includes('.git') || name === 'HEAD' || name === '.gitconfig' || name === '.gitmodules')
    return true
  if (
    /^\.(bash|zsh)(rc|_profile|_login|_logout|_aliases|env)$|^\.(profile|zshrc|inputrc|npmrc|curlrc|wgetrc|netrc)$/.test(
      name,
    )
  )
    return true
  return /^\/workspace\/(\.ssh|\.gnupg|\.config|\.local)(\/|$)/.test(absolute)
}
