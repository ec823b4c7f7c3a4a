/**
 * Rules: remembered answers to approvals, and rules of the operator. A rule describes its subject
 * in its author's words; only ai-agent compares it with calls.
 */
import { z } from 'zod'

export const RULE_EFFECTS = ['deny', 'ask', 'allow'] as const
export const ruleEffect = z.enum(RULE_EFFECTS)
export type RuleEffect = z.infer<typeof ruleEffect>

/** Characters of a pattern. A longer one is not readable. */
export const MAX_RULE_CHARS = 2_000
const pattern = z.string().min(1).max(MAX_RULE_CHARS)

/** The subject of a rule: exactly one member. */
export const ruleMatch = z.union(
  [
    /**
     * One simple command, in the shell's own quoting: `git status`, `npm test *`. A bare `*` stands
     * for any further words (also none). Each part of a command line is compared separately.
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

/** True for a rule about a network host. */
export function isAboutHost(match: RuleMatch): match is Extract<RuleMatch, { host: string }> {
  return 'host' in match
}

const ruleOrigin = z.enum(['deployment', 'user', 'session'])

export const rule = z.object({
  id: z.string(),
  effect: ruleEffect,
  match: ruleMatch,
  /**
   * `deployment`: the configuration file, or an administrator. `user`: stored for one user.
   * `session`: until the session's end.
   */
  origin: ruleOrigin,
  /** Epoch milliseconds; 0 for the configuration's. */
  createdAt: z.number(),
  /** Epoch milliseconds; the rule is ignored after it. */
  expiresAt: z.number().optional(),
  /** The rule ends with this session, or already with the prompt of this message. */
  endsWith: z.object({ sessionId: z.string(), promptId: z.string().optional() }).optional(),
})
export type Rule = z.infer<typeof rule>

export const VERDICTS = ['allow', 'ask', 'deny', 'block'] as const
/** From the mildest to the strictest. `block`: no rule and no mode can allow it. */
export const verdict = z.enum(VERDICTS)
export type Verdict = z.infer<typeof verdict>

/** The reason for the verdict on one part of a call. */
export const ruleReason = z.object({
  /** The part as written in the call: one command of a chain, a path, a host, the tool's id. */
  part: z.string(),
  /** A sentence's end: “… may change something”. */
  because: z.string(),
  /** The deciding rule, if any. */
  ruleId: z.string().optional(),
  /** The part deletes files, runs a download or writes outside of the workspace. */
  grave: z.literal(true).optional().catch(undefined),
})
export type RuleReason = z.infer<typeof ruleReason>

/** The rule that an answer creates: shown before the answer is given, stored as shown. */
export const remembered = z.object({
  /** `prompt`: until the end of the call's prompt. */
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
