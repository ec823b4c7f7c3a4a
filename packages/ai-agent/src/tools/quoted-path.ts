/** Paths of tools as what a model and people read. */
import { quotePath } from '@sandlot/shared/base/quoted-path'
import { textArg } from './tool.ts'
import { shownPath } from './workspace-path.ts'

/** The path among unchecked arguments, for a title. */
export function pathArg(args: Record<string, unknown>): string | undefined {
  const path = textArg(args, 'path')
  return path === undefined ? undefined : quotePath(path)
}

/** A path of the workspace, absolute, for a sentence. */
export function saidPath(relative: string): string {
  return quotePath(shownPath(relative))
}
