/**
 * The one place where it is decided whether a call runs. Pure: a call, the rules that hold now and
 * the mode in, a verdict with its reasons out. Built-in blocks > deny > ask > allow > what the tool
 * is > the mode, for every part of the call on its own; the strictest part decides.
 */
import type { Mode } from '@sandlot/shared/chat/mode'
import { type Rule, type RuleReason, type Verdict, VERDICTS, describeMatch } from '@sandlot/shared/chat/rules'
import { LOSES_UNKNOWN, LOSS_WORDS, type Part, isGrave, riskReason, partsOf } from './parts.ts'
import { type Loss, lossKey } from './shell/loss.ts'
import { type Answer, concerns, covers } from './match.ts'
import type { CallRequest } from './request.ts'

export interface Judgement {
  verdict: Verdict
  /** Reasons of the verdict, the gravest first. Empty when everything simply may run. */
  why: RuleReason[]
  /**
   * Parts that ask only because nothing allows them: what an answer can be remembered for. Empty
   * when a rule asks.
   */
  open: Part[]
  /**
   * Not looked up yet. Where it asks, it would run if git held what these delete or overwrite;
   * where it is allowed, it asks if one of them is found. Empty: they decide nothing.
   */
  atRisk: Loss[]
}

/** By what `auto` decides beside rules. Without it `auto` asks as `auto-edit` does. */
export interface ExternalAccess {
  /** External access of commands, as the end of a sentence; undefined: none. */
  externalAccess: string | undefined
  /** Keys of the losses that git does not make good. Absent: not looked up. */
  lost?: ReadonlySet<string> | undefined
}

/** More are too many to read, and the event is stored. */
const MAX_REASONS = 50

/** `rules`: only those that have not expired. */
export function judge(
  request: CallRequest,
  rules: readonly Rule[],
  mode: Mode,
  external?: ExternalAccess,
): Judgement {
  if (mode === 'yolo' && rules.length === 0 && isOnlyShell(request))
    return { verdict: 'allow', why: [], open: [], atRisk: [] }
  const judged = partsOf(request).map((part) => ({
    part,
    ...judgePart(part, request, rules, { mode, external }),
  }))
  const level = Math.max(0, ...judged.map(({ verdict }) => VERDICTS.indexOf(verdict)))
  const verdict = VERDICTS[level] ?? 'block'
  const deciding = judged.filter((one) => one.verdict === verdict)
  const gravest = deciding.toSorted((a, b) => gravity(b) - gravity(a))
  const why = gravest.flatMap(({ part, because, ruleId }) => {
    if (because === undefined) return []
    const grave = verdict === 'ask' && isGrave(part, because)
    return [{ part: part.text, because, ruleId, ...(grave && { grave }) }]
  })
  const ruled = deciding.some(({ byRule }) => byRule)
  const asks = verdict === 'ask'
  const settled = asks && deciding.some(({ atRisk }) => atRisk === undefined)
  return {
    verdict,
    why: distinct(why).slice(0, MAX_REASONS),
    open: asks && !ruled ? deciding.map(({ part }) => part) : [],
    atRisk: settled ? [] : judged.flatMap((one) => one.atRisk ?? []),
  }
}

/** Nothing but a rule stops a command in yolo: it need not be parsed where there is none. */
function isOnlyShell({ asks }: CallRequest): boolean {
  return asks.length > 0 && asks.every(({ kind }) => kind === 'shell')
}

function gravity({ part, because = '', byRule }: PartVerdict & { part: Part }): number {
  return riskReason(because, part.subject, byRule === true)
}

interface PartVerdict {
  verdict: Verdict
  because?: string
  ruleId?: string
  /** A rule made it ask or deny, so an answer cannot be remembered against it. */
  byRule?: true
  /** See `Judgement`. */
  atRisk?: readonly Loss[]
}

function judgePart(
  part: Part,
  request: CallRequest,
  rules: readonly Rule[],
  { mode, external }: { mode: Mode; external: ExternalAccess | undefined },
): PartVerdict {
  if (part.block !== undefined) return { verdict: 'block', because: part.block }
  const hidden = deniedThroughLink(part, request, rules)
  if (hidden !== undefined) return hidden
  let doubt: PartVerdict | undefined
  for (const effect of ['deny', 'ask'] as const) {
    for (const rule of rules) {
      if (rule.effect !== effect) continue
      const answer = concerns(rule.match, part, request)
      if (answer === 'no') continue
      const ruling = { because: ruleWords(rule, answer), ruleId: rule.id, byRule: true } as const
      if (answer === 'yes') return { verdict: effect, ...ruling }
      doubt ??= { verdict: 'ask', ...ruling }
    }
  }
  if (doubt !== undefined) return doubt
  const allowing = rules.find((rule) => rule.effect === 'allow' && covers(rule.match, part, request))
  if (allowing !== undefined)
    return { verdict: 'allow', because: ruleWords(allowing, 'yes'), ruleId: allowing.id }
  if (mode !== 'yolo' && part.usual === 'read') return judgeRead(part, external?.lost)
  if (runsIn(mode, part)) return { verdict: 'allow' }
  return mode === 'auto' && external !== undefined && part.usual === 'act'
    ? judgeInAuto(part, request, external)
    : { verdict: 'ask', because: part.because }
}

/** Git reads without a question only where its configuration is known to run nothing. */
function judgeRead({ losses = [] }: Part, lost: ExternalAccess['lost']): PartVerdict {
  if (losses.length > 0 && lost === undefined) return { verdict: 'allow', atRisk: losses }
  const found = losses.find((loss) => lost?.has(lossKey(loss)) === true)
  return found === undefined ? { verdict: 'allow' } : { verdict: 'ask', because: LOSS_WORDS[found.does] }
}

/** Depends on the sandbox's access, and on whether git holds the files that the part would lose. */
function judgeInAuto(
  part: Part,
  { tool }: CallRequest,
  { externalAccess, lost }: ExternalAccess,
): PartVerdict {
  const { subject, because, losses = [] } = part
  if (subject.type === 'tool')
    return { verdict: 'ask', because: tool.includes('::') ? 'is a tool of an MCP server' : because }
  if (externalAccess !== undefined)
    return { verdict: 'ask', because: `${because}, and this sandbox ${externalAccess}` }
  const gone = losses.find((loss) => loss.paths === undefined || lost?.has(lossKey(loss)) === true)
  if (gone !== undefined) return { verdict: 'ask', because: lossWords(gone) }
  if (losses.length > 0 && lost === undefined)
    return { verdict: 'ask', because: lossWords(losses[0]), atRisk: losses }
  return { verdict: 'allow' }
}

function lossWords(loss: Loss | undefined): string {
  if (loss === undefined) return LOSS_WORDS.overwrites
  return loss.paths === undefined ? LOSES_UNKNOWN : LOSS_WORDS[loss.does]
}

/**
 * Through a symbolic link nothing is reached that a rule about files denies or asks about, under
 * either name: a user would be shown the one, and get the other.
 */
function deniedThroughLink(
  part: Part,
  request: CallRequest,
  rules: readonly Rule[],
): PartVerdict | undefined {
  const { subject } = part
  if (subject.type !== 'file' || subject.linkedFrom === undefined) return undefined
  const asNamed = { ...part, subject: { ...subject, path: subject.linkedFrom } }
  for (const rule of rules) {
    if (rule.effect === 'allow' || !('file' in rule.match)) continue
    const answers = [part, asNamed].map((one) => concerns(rule.match, one, request))
    const answer = answers.find((one) => one === 'yes') ?? answers.find((one) => one === 'maybe')
    if (answer === undefined) continue
    const because = `is reached through a symbolic link, and ${ruleWords(rule, answer)}`
    return { verdict: 'deny', because, ruleId: rule.id, byRule: true }
  }
  return undefined
}

/**
 * Why a file must not be touched even by a person themselves, whom no rule stops where no link
 * leads elsewhere.
 */
export function fileProblem(request: CallRequest, rules: readonly Rule[]): string | undefined {
  for (const part of partsOf(request)) {
    const because = part.block ?? deniedThroughLink(part, request, rules)?.because
    if (because !== undefined) return `${part.text} ${because}`
  }
  return undefined
}

function runsIn(mode: Mode, { usual }: Part): boolean {
  if (usual === 'open') return false
  return mode === 'yolo' || usual === 'read' || (usual === 'edit' && mode !== 'manual')
}

const WHOSE = { deployment: 'this Sandlot’s rule', user: 'your rule', session: 'your rule for this chat' }
const DOES = { deny: 'denies', ask: 'asks about', allow: 'allows' }

function ruleWords({ origin, effect, match }: Rule, answer: Answer): string {
  const about = `${WHOSE[origin]} that ${DOES[effect]} ${describeMatch(match)}`
  return answer === 'maybe' ? `may be what is meant by ${about}` : `is what is meant by ${about}`
}

function distinct(reasons: readonly RuleReason[]): RuleReason[] {
  const seen = new Set<string>()
  return reasons.filter(({ part, because }) => {
    const key = JSON.stringify([part, because])
    const fresh = !seen.has(key)
    seen.add(key)
    return fresh
  })
}
