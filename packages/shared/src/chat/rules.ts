/**
 * Rules: remembered answers to approvals, and what an operator writes down beforehand. A rule says
 * what it is about in the words that its author reads; who compares it with a call is ai-agent
 * alone.
 */
import { z } from 'zod'

export const RULE_EFFECTS = ['deny', 'ask', 'allow'] as const
export const ruleEffect = z.enum(RULE_EFFECTS)
export type RuleEffect = z.infer<typeof ruleEffect>

/** Characters of a pattern. A longer one cannot be read by a person. */
export const MAX_RULE_CHARS = 2_000
const pattern = z.string().min(1).max(MAX_RULE_CHARS)

/** What a rule is about: exactly one member. */
export const ruleMatch = z.union(
  [
    /**
     * One simple command, in the shell's own quoting: `git status`, `npm test *`. A bare `*` stands
     * for any further words (also none). Every part of a command line is compared on its own.
     */
    z.strictObject({ shell: pattern }),
    /** A whole command line, letter for letter. */
    z.strictObject({ command: pattern }),
    /**
     * A path of the workspace: `*` within a name, `**` over folders. Without `access`: reading and
     * writing.
     */
    z.strictObject({ file: pattern, access: z.enum(['read', 'write']).optional() }),
    /** `example.org`, `*.example.org`, with `:port` or for any. */
    z.strictObject({ host: pattern }),
    /** A tool by its id: `write_file`, `flights-mcp::search-flights`, `flights-mcp::*`, `*`. */
    z.strictObject({ tool: pattern }),
  ],
  'must have exactly one of shell, command, file (with access), host and tool, like {"shell": "npm test *"}',
)
export type RuleMatch = z.infer<typeof ruleMatch>

/** What it is about is a host of the network. */
export function isAboutHost(match: RuleMatch): match is Extract<RuleMatch, { host: string }> {
  return 'host' in match
}

const ruleOrigin = z.enum(['deployment', 'user', 'session'])

export const rule = z.object({
  id: z.string(),
  effect: ruleEffect,
  match: ruleMatch,
  /**
   * `deployment`: the configuration file, or an administrator. `user`: kept for one person.
   * `session`: until the session's end.
   */
  origin: ruleOrigin,
  /** Epoch milliseconds; 0 for the configuration's. */
  createdAt: z.number(),
  /** Epoch milliseconds after which it is as if it were not there. */
  expiresAt: z.number().optional(),
  /** It is over with this session, or already with the answer to this message of it. */
  endsWith: z.object({ sessionId: z.string(), promptId: z.string().optional() }).optional(),
})
export type Rule = z.infer<typeof rule>

export const VERDICTS = ['allow', 'ask', 'deny', 'block'] as const
/** From the mildest to the strictest. `block`: no rule and no mode can allow it. */
export const verdict = z.enum(VERDICTS)
export type Verdict = z.infer<typeof verdict>

/** Why a part of a call was judged as it was. */
export const ruleReason = z.object({
  /** The part, as the call has it: one command of a chain, a path, a host, the tool's id. */
  part: z.string(),
  /** A sentence's end: “… may change something”. */
  because: z.string(),
  /** The rule that decided, when one did. */
  ruleId: z.string().optional(),
})
export type RuleReason = z.infer<typeof ruleReason>

/** What an answer makes Sandlot remember: shown before it is given, stored as shown. */
export const remembered = z.object({
  /** `prompt`: until the end of the prompt whose call it was. */
  scope: z.enum(['prompt', 'session', 'always']),
  rules: z.array(ruleMatch).min(1),
})
export type Remembered = z.infer<typeof remembered>

/** A rule's subject in words, without its effect: “commands that begin with npm test”. */
export function describeMatch(match: RuleMatch): string {
  if ('command' in match) return `exactly ${match.command}`
  if ('shell' in match) {
    if (match.shell === '*') return 'every command'
    const begins = match.shell.match(/^(?<words>[^*]+) \*$/)?.groups?.['words']
    if (begins !== undefined) return `commands that begin with ${begins}`
    return match.shell.includes('*') ? `commands like ${match.shell}` : `the command ${match.shell}`
  }
  if ('file' in match) {
    const act =
      match.access === 'read' ? 'reading' : match.access === 'write' ? 'writing' : 'reading and writing'
    return `${act} ${match.file}`
  }
  if ('host' in match) return `the host ${match.host}`
  return match.tool === '*' ? 'every tool' : `the tool ${match.tool}`
}
