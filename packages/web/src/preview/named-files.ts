/** Files of the workspace that a text of the model names. */
import { workspacePath, workspacePathInCode } from '../markdown/workspace-path.ts'
import { isPreviewed } from './kinds.ts'

/** An answer that lists a folder is no gallery. */
const MOST = 4

/** In links and in code, each once, without the pictures that are in the text already. */
export function filesNamed(text: string): string[] {
  const prose = text.replaceAll(/^(`{3,}|~{3,})[^]*?(?:^\1|$(?![^]))/gm, '')
  const shown = new Set([...prose.matchAll(/!\[[^\]]*\]\(<?([^)>\s]+)/g)].map(([, to]) => workspacePath(to)))
  const links = [...prose.matchAll(/(?<!!)\[[^\]]*\]\(<?([^)>\s]+)>?\)/g)].map(([, to]) => workspacePath(to))
  const code = [...prose.matchAll(/`([^`\n]+)`/g)].map(([, path = '']) => workspacePathInCode(path))
  const named = [...links, ...code].filter(
    (path): path is string => path !== undefined && !shown.has(path) && isPreviewed(path),
  )
  return [...new Set(named)].slice(0, MOST)
}
