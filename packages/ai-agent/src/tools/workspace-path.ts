/**
 * Paths as models write them → paths below the workspace. Pure: decided before anything is opened.
 */
import { posix } from 'node:path'
import type { SandboxFiles } from '@sandlot/sandbox/files'
import type { Sandbox } from '@sandlot/sandbox/sandbox'
import type { ToolLocation } from '@sandlot/shared/chat/call'
import { ToolError } from './tool-error.ts'
import { acquireSandbox } from './sandbox-command/sandboxed-tool-executor.ts'
import { findStoredPath } from './name-forms.ts'
import type { CallContext, Tool, ToolTitle, ToolUpdate } from './tool.ts'

export const WORKSPACE = '/workspace'

const MAX_PATH_BYTES = 4096
const MAX_NAME_BYTES = 255

/**
 * `path` relative to the workspace, `''` for the workspace itself. Relative paths begin there;
 * absolute ones must be below one of `roots`. @throws ToolError `path_outside`, or
 * `invalid_arguments` for what cannot be a path.
 */
export function workspacePath(path: string, roots: readonly string[] = [WORKSPACE]): string {
  if (path.includes('\0')) throw new ToolError('invalid_arguments', 'The path has a NUL character.')
  if (!path.isWellFormed()) throw new ToolError('invalid_arguments', 'The path is not well-formed Unicode.')
  if (Buffer.byteLength(path) > MAX_PATH_BYTES) {
    throw new ToolError('invalid_arguments', `The path is longer than ${MAX_PATH_BYTES} bytes.`)
  }
  // Neither is special inside the sandbox, but they mean a place outside of it.
  if (isElsewhere(path)) throw outside(path)
  const root = roots.find((root) => path === root || path.startsWith(`${root}/`))
  if (path.startsWith('/') && root === undefined) throw outside(path)
  const relative = root === undefined ? path : `./${path.slice(root.length)}`
  if (climbsOut(relative) || climbsOut(relative.replaceAll('\\', '/'))) throw outside(path)

  const normal = posix.normalize(relative === '' ? '.' : relative).replace(/\/+$/, '')
  if (normal.split('/').some((name) => Buffer.byteLength(name) > MAX_NAME_BYTES)) {
    throw new ToolError('invalid_arguments', `A name in the path is longer than ${MAX_NAME_BYTES} bytes.`)
  }
  return normal === '.' ? '' : normal
}

/** True when the path is above its beginning at any point, even if it comes back. */
function climbsOut(relative: string): boolean {
  let depth = 0
  for (const part of relative.split('/')) {
    if (part === '..') depth--
    else if (part !== '' && part !== '.') depth++
    if (depth < 0) return true
  }
  return false
}

function outside(path: string): ToolError {
  const shown = path.length > 200 ? `${path.slice(0, 200)}…` : path
  return new ToolError(
    'path_outside',
    `${shown} is outside the workspace. This tool works below ${WORKSPACE} only; paths are relative to it or begin with it.`,
  )
}

/** The path of the workspace as people and models see it. */
export function shownPath(relative: string): string {
  return relative === '' ? WORKSPACE : `${WORKSPACE}/${relative}`
}

/** The locations of a call, from unchecked arguments. */
export function pathLocations(path: unknown): ToolLocation[] {
  if (typeof path !== 'string' || path === '') return []
  try {
    return [{ path: shownPath(workspacePath(path)) }]
  } catch {
    // The call will be refused with the reason; there is no place to show.
    return []
  }
}

/**
 * The sandbox, and the file that was judged as `path`: `files` follows no symbolic link, so that it
 * is this one or none. A path that cannot be inside is refused before the sandbox is woken.
 */
export async function* openWorkspace(
  path: string,
  ctx: CallContext,
): AsyncGenerator<ToolUpdate, { sandbox: Sandbox; files: SandboxFiles; path: string }> {
  if (!path.startsWith('/')) workspacePath(path)
  const sandbox = yield* acquireSandbox(ctx)
  // Commands of a backend without containers see the workspace under another name, and models
  // repeat what they see.
  const named = workspacePath(path, [WORKSPACE, sandbox.workspace])
  const place = ctx.judged?.paths?.get(path)?.path ?? (await findStoredPath(sandbox.files, named))
  return { sandbox, files: sandbox.files.withoutLinks, path: place }
}

/** The folder in which a chat with this `cwd` works; undefined: the workspace itself. */
export function folderOfChat(cwd: string): string | undefined {
  const normal = posix.normalize(cwd).replace(/\/+$/, '')
  return normal.startsWith(`${WORKSPACE}/`) ? normal : undefined
}

/** The tool as a chat with a folder of its own has it: relative paths begin there. */
export function inFolder<T extends Tool>(tool: T, folder: string): T {
  const { pathArgs } = tool
  if (pathArgs === undefined) return tool
  const placed = (args: Record<string, unknown>): Record<string, unknown> => {
    const here = { ...args }
    for (const [name, absent] of Object.entries(pathArgs)) {
      const path = args[name] ?? absent
      if (typeof path === 'string') here[name] = isRelative(path) ? `${folder}/${path}` : path
    }
    return here
  }
  return {
    ...tool,
    title(args) {
      const [said, there] = [tool.title(args), tool.title(placed(args))].map((title): ToolTitle =>
        typeof title === 'string' ? { title } : title,
      )
      const isNamed = Object.keys(pathArgs).every(
        (name) => args[name] !== undefined || pathArgs[name] === undefined,
      )
      return { ...there, title: (isNamed ? said?.title : there?.title) ?? tool.name }
    },
    ...(tool.requests === undefined
      ? {}
      : { requests: (args: Record<string, unknown>) => tool.requests?.(placed(args)) ?? [] }),
    execute: (args, ctx) => tool.execute(placed(args), ctx),
  }
}

/** Neither absolute nor in a home directory or on a drive, which are refused as they are. */
function isRelative(path: string): boolean {
  return !path.startsWith('/') && !isElsewhere(path)
}

/** In a home directory or on a drive. `~$report.docx` is a name. */
function isElsewhere(path: string): boolean {
  return /^~(?:[A-Za-z_][\w-]*)?(?:\/|$)|^[A-Za-z]:[\\/]/.test(path)
}
