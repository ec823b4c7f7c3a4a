/**
 * The options of an approval request, made from the call. The rules that an option would store are
 * part of it: they are shown before it is chosen, and stored as shown.
 */
import type { PermissionOption } from '@sandlot/shared/chat/sandlot-event'
import { type RuleMatch, MAX_RULE_CHARS, describeMatch, isAboutHost } from '@sandlot/shared/chat/rules'
import type { Judgement } from './engine.ts'
import { isOrdersFile } from './files.ts'
import type { Part } from './parts.ts'
import type { CallRequest } from './request.ts'
import { certainlyMatches, quoteWord } from './shell/pattern.ts'
import type { ArgWord } from './shell/words.ts'

/** The longest time for which users may have approvals remembered. */
export type Remembering = 'never' | 'session' | 'always'

const ONCE: PermissionOption = { optionId: 'allow_once', name: 'Allow', kind: 'allow_once' }
const DENY: PermissionOption = { optionId: 'reject_once', name: 'Deny', kind: 'reject_once' }
/** More patterns are too many to read in one option. */
const MOST_PATTERNS = 3

export function approvalOptions(
  request: CallRequest,
  { open }: Judgement,
  most: Remembering,
): PermissionOption[] {
  if (open.length === 0 || most === 'never') return [ONCE, DENY]
  const exact = exactly(request, open)
  const wider = widely(open)
  const forSession = wider ?? exact
  const options: PermissionOption[] = [ONCE]
  if (forSession !== undefined) {
    const rules = sessionRules(request, open) ?? forSession
    // A host that is allowed once is open until the message is answered anyway.
    if (!rules.some(isAboutHost))
      options.push({
        optionId: 'allow_prompt',
        name: 'Allow for this message',
        kind: 'allow_always',
        remembers: { scope: 'prompt', rules },
      })
    options.push({
      optionId: 'allow_session',
      name: 'Allow for this chat',
      kind: 'allow_always',
      remembers: { scope: 'session', rules },
    })
  }
  if (most === 'always' && !open.some(isOrders)) {
    if (exact !== undefined)
      options.push({
        optionId: 'allow_always_exact',
        name: `Always allow ${'command' in (exact[0] ?? {}) ? 'exactly this' : describeAll(exact)}`,
        kind: 'allow_always',
        remembers: { scope: 'always', rules: exact },
      })
    if (wider !== undefined)
      options.push({
        optionId: 'allow_always',
        name: `Always allow ${describeAll(wider)}`,
        kind: 'allow_always',
        remembers: { scope: 'always', rules: wider },
      })
  }
  return [...options, DENY]
}

function describeAll(rules: readonly RuleMatch[]): string {
  return rules.map(describeMatch).join(' and ')
}

function isOrders({ subject }: Part): boolean {
  return subject.type === 'file' && subject.access === 'write' && isOrdersFile(subject.path)
}

/** A rule for exactly this call; undefined when the call cannot be shown completely. */
function exactly(request: CallRequest, open: readonly Part[]): RuleMatch[] | undefined {
  const [ask] = request.asks
  if (ask === undefined) return [{ tool: request.ruleId ?? request.tool }]
  if (request.asks.length > 1) return undefined
  switch (ask.kind) {
    case 'shell': {
      const isHidden = open.some(
        ({ subject }) => subject.type === 'unknown' && /invisible|NUL/.test(subject.because),
      )
      return isHidden || ask.command.length > MAX_RULE_CHARS ? undefined : [{ command: ask.command }]
    }
    case 'file': {
      const path = open[0]?.subject.type === 'file' ? open[0].subject.path : ask.path
      return /[*?]/.test(path) || path.length > MAX_RULE_CHARS
        ? undefined
        : [{ file: path, access: ask.access }]
    }
    case 'host':
      return [{ host: ask.port === undefined ? ask.host : `${ask.host}:${ask.port}` }]
  }
}

/**
 * A wider rule: a command with other arguments, or a folder. Undefined when there is no usual one.
 */
function widely(open: readonly Part[]): RuleMatch[] | undefined {
  const rules: RuleMatch[] = []
  for (const { subject } of open) {
    if (subject.type === 'run') {
      const shell = commandPattern(subject.words)
      if (shell === undefined) return undefined
      if (!rules.some((rule) => 'shell' in rule && rule.shell === shell)) rules.push({ shell })
    } else if (subject.type === 'file' && !isOrdersFile(subject.path)) {
      const folder = subject.path.slice(0, subject.path.lastIndexOf('/'))
      if (folder === '/workspace' || folder === '' || /[*?]/.test(folder)) return undefined
      rules.push({ file: `${folder}/**`, access: subject.access })
    } else return undefined
  }
  return rules.length === 0 || rules.length > MOST_PATTERNS ? undefined : rules
}

/** For one session, a rule for all edits of the workspace. */
function sessionRules(request: CallRequest, open: readonly Part[]): RuleMatch[] | undefined {
  const edits =
    request.kind === 'edit' && open.every((part) => part.subject.type === 'file' && !isOrders(part))
  return edits ? [{ file: '/workspace/**', access: 'write' }] : undefined
}

// ── The pattern that a command suggests ─────────────────────────────────────────────────────────

/** `npm test`, `git add`: the second word is what they do. `npm run`: the third. */
const WITH_COMMANDS = new Set(
  'git npm pnpm yarn bun cargo go dotnet mvn gradle pip pip3 uv poetry rake bundle composer mix flutter terraform gh turbo nx brew apt apt-get docker kubectl helm'.split(
    ' ',
  ),
)
const SCRIPT_RUNNERS = new Set(['run', 'run-script', 'exec', 'x', 'compose', 'tool'])
/** They do one thing to the files that they are given, or check them. */
const BY_NAME = new Set(
  'mkdir touch cp mv ln tsc eslint prettier oxlint oxfmt biome ruff black mypy pyright pytest vitest jest mocha make cmake ninja gcc g++ clang rustfmt gofmt shellcheck shfmt zip unzip gzip gunzip tar rsync'.split(
    ' ',
  ),
)

/**
 * A pattern that covers these words, or undefined: then only the command itself can be remembered.
 */
function commandPattern(words: readonly ArgWord[]): string | undefined {
  const named = namedWords(words)
  if (named === undefined) return undefined
  const pattern = `${named.map(quoteWord).join(' ')} *`
  // An offer that does not even cover this call would be asked again at once.
  return certainlyMatches(pattern, words) ? pattern : undefined
}

function namedWords(words: readonly ArgWord[]): string[] | undefined {
  const [name, verb, script] = words.map(({ literal }) => literal)
  if (name === undefined) return undefined
  if (BY_NAME.has(name)) return [name]
  if (!WITH_COMMANDS.has(name) || verb === undefined || !/^[a-z][\w:-]*$/.test(verb)) return undefined
  if (!SCRIPT_RUNNERS.has(verb)) return [name, verb]
  return script === undefined || !/^[\w:@/.-]+$/.test(script) || script.startsWith('-')
    ? undefined
    : [name, verb, script]
}
