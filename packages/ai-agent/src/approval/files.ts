/** Paths of the workspace, and the files whose change is more than an edit. */
import { posix } from 'node:path'

export const WORKSPACE = '/workspace'

/** Absolute and without `.`, `..` and double slashes. Relative paths begin at the workspace. */
export function absolutePath(path: string): string {
  return posix.resolve(WORKSPACE, path)
}

/**
 * This path as commands see it: a backend without containers has the workspace under another name.
 */
export function inSandbox(path: string, { workspace }: { workspace: string }): string {
  const below = posix.relative(WORKSPACE, path)
  return path.startsWith('/') && !below.startsWith('..') ? posix.join(workspace, below) : path
}

/** Sandlot's own files: stored outputs and shell states. No rule allows a change of them. */
export function isOwnFile(path: string): boolean {
  return /^\/workspace\/\.tool-outputs(\/|$)/.test(absolutePath(path))
}

/** The names of a file with the agent's instructions for its folder; the first one counts. */
export const INSTRUCTION_FILES = ['AGENTS.md', 'CLAUDE.md'] as const

/** A file that the agent reads as instructions, in any folder. */
export function isInstructionsFile(path: string): boolean {
  const name = posix.basename(absolutePath(path))
  return INSTRUCTION_FILES.some((one) => one === name)
}

/** Read by shells, editors, debuggers, interpreters and package managers wherever they start. */
const STARTS =
  /^\.(((bash|zsh)(rc|_profile|_login|_logout|_aliases|env))|z(profile|login|logout)|(k|c|tc)shrc|profile|login|inputrc|npmrc|curlrc|wgetrc|netrc|envrc|direnvrc|exrc|g?vimrc|nvimrc|nvim\.lua|dir-locals\.el|emacs|tmux\.conf|screenrc|gdbinit|lldbinit|pdbrc|pythonrc|Rprofile|irbrc|pryrc|psqlrc|sqliterc|yarnrc(\.yml)?|pnpmfile\.c?js|pre-commit-config\.yaml|mcp\.json|pam_environment|xprofile|xsession)$|^(site|user)customize\.py$|^lefthook\.ya?ml$|\.pth$/

/** Folders whose files a program runs, or keeps to, without naming them. */
const FOLDERS =
  /\/(\.git|\.hg|\.husky|\.vscode|\.idea|\.zed|\.devcontainer|\.mvn|\.yarn|\.bundle|\.emacs\.d|node_modules\/\.bin|\.?venv\/bin)(\/|$)|\/\.cargo\/config(\.toml)?$|\/\.claude\/settings[^/]*$|\/\.cursor\/mcp\.json$|^\/workspace\/\.(ssh|gnupg|config|local|gradle|m2|cargo|docker|vim)(\/|$)/

/**
 * Files that configure programs: git's own (a pager, a hook or a file-system monitor is a command
 * line there), start-up files, keys, settings of editors, and folders in PATH. HOME is the
 * workspace. An edit of one decides what later commands run, without a word of theirs. A Makefile
 * or a package.json runs when it is asked for, and is none of them.
 */
export function isOrdersFile(path: string): boolean {
  const absolute = absolutePath(path)
  const name = posix.basename(absolute)
  // `HEAD` makes any folder a repository with a configuration of its own.
  if (name === 'HEAD' || name === '.gitconfig' || name === '.gitmodules') return true
  return STARTS.test(name) || FOLDERS.test(absolute)
}
