/** Which file of the workspace a model means by an address or by a path in code. */

const ROOT = '/workspace/'

/**
 * The path below the workspace; undefined for an address of the web, one with a protocol, and what
 * leads out. A part of the page behind `#`, and a line behind `:`, are left off. `folder`: where
 * the text itself is.
 */
export function workspacePath(address: string | undefined, folder = ''): string | undefined {
  if (address === undefined || !URL.canParse(address, 'http://relative') || URL.canParse(address))
    return undefined
  const path = decoded(address.replace(/[#?].*$/s, '')).replace(/(?::\d+){1,2}$/, '')
  if (path.startsWith('//') || /[\\\0]/.test(path)) return undefined
  if (path.startsWith('/') && !path.startsWith(ROOT)) return undefined
  if (path === '') return undefined
  const isWhole = path.startsWith(ROOT)
  const names = isWhole ? [] : folder.split('/').filter((name) => name !== '')
  for (const name of (isWhole ? path.slice(ROOT.length) : path).split('/')) {
    if (name === '' || name === '.') continue
    if (name !== '..') names.push(name)
    else if (names.pop() === undefined) return undefined
  }
  return names.length === 0 ? undefined : names.join('/')
}

/**
 * The path in a code span, only if it is explicit. Most names in code are no files of the
 * workspace.
 */
export function workspacePathInCode(text: string): string | undefined {
  return /^\/workspace\/[^\s*?{}<>|;&$"'`]+$/.test(text) && !text.endsWith('/')
    ? workspacePath(text)
    : undefined
}

/** Malformed escapes stay as they are: `100%.csv` is a name. */
function decoded(text: string): string {
  try {
    return decodeURIComponent(text)
  } catch {
    return text
  }
}
