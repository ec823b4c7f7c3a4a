/** Patterns of paths, as people write them in rules: compared in time linear in the path, whatever the pattern. */

const WORKSPACE = '/workspace'
/** More wildcards than this say nothing that a reader could check; each costs one pass over a path. */
const MAX_WILDCARDS = 32
const KEPT = 500

type Step = { text: string } | '?' | '*' | '**' | '/**/' | '/**'

/** `/**` only at the end. */
const TOKENS = /\/\*\*$|\/\*\*\/|\*\*|[*?]/g

const parsed = new Map<string, readonly Step[]>()

/** Why `pattern` cannot stand in a rule; undefined when it can. */
export function pathPatternProblem(pattern: string): string | undefined {
  const wildcards = stepsOf(pattern).filter((step) => typeof step === 'string').length
  return wildcards > MAX_WILDCARDS ? `has ${wildcards} wildcards; ${MAX_WILDCARDS} may be in it` : undefined
}

/** `*` and `?` within a name, `**` over folders; `folder/**` also means the folder. Relative patterns begin at the workspace. */
export function matchesPath(pattern: string, path: string): boolean {
  // Which beginnings of the path the steps so far can stand for.
  let reached = new Uint8Array(path.length + 1)
  reached[0] = 1
  for (const step of stepsOf(pattern)) {
    const next = new Uint8Array(path.length + 1)
    take(step, path, reached, next)
    reached = next
  }
  return reached[path.length] === 1
}

function stepsOf(pattern: string): readonly Step[] {
  const known = parsed.get(pattern)
  if (known !== undefined) return known
  const absolute = pattern.startsWith('/') ? pattern : `${WORKSPACE}/${pattern}`
  const steps: Step[] = []
  let from = 0
  for (const { 0: token, index } of absolute.matchAll(TOKENS)) {
    if (index > from) steps.push({ text: absolute.slice(from, index) })
    steps.push(token as Exclude<Step, object>)
    from = index + token.length
  }
  if (from < absolute.length) steps.push({ text: absolute.slice(from) })
  if (parsed.size >= KEPT) parsed.clear()
  parsed.set(pattern, steps)
  return steps
}

/** One pass over the path: from the beginnings in `reached` to those in `next`, with `step` behind them. */
function take(step: Step, path: string, reached: Uint8Array, next: Uint8Array): void {
  if (typeof step === 'object') {
    const { text } = step
    for (let at = reached.indexOf(1); at !== -1; at = reached.indexOf(1, at + 1))
      if (path.startsWith(text, at)) next[at + text.length] = 1
    return
  }
  let open = false
  for (let at = 0; at <= path.length; at++) {
    const here = reached[at] === 1
    const slash = path[at] === '/'
    switch (step) {
      case '?':
        if (here && at < path.length && !slash) next[at + 1] = 1
        break
      case '*':
        open ||= here
        if (open) next[at] = 1
        if (slash) open = false
        break
      case '**':
        open ||= here
        if (open) next[at] = 1
        break
      case '/**':
        if (here || open) next[at] = 1
        open ||= here && slash
        break
      case '/**/':
        open ||= here && slash
        if (open && slash) next[at + 1] = 1
        break
    }
  }
}
