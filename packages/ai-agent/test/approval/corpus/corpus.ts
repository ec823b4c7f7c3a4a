/**
 * Commands and what must become of them, under one stated set of rules in the mode `manual`. `deny`: the denied program
 * is there to be seen. `ask`: it may be there, or nothing is known. `allow`: proven to only read, or allowed by a rule.
 */
import type { Rule, RuleEffect, Verdict } from '@sandlot/shared/chat/rules'

export type Case = readonly [command: string, expected: Verdict]

const patterns: Record<RuleEffect, readonly string[]> = {
  deny: ['rm *', 'curl *', 'git push *', 'dd *', 'chmod 777 *'],
  ask: ['npm publish *'],
  allow: [
    'npm test *',
    'npm publish *',
    'git add *',
    'git commit *',
    'git fetch *',
    'git rebase *',
    'git clone *',
    'git config *',
    'mkdir *',
    'make *',
    'tar *',
    'rsync *',
    'find *',
    'sed *',
    'awk *',
    'vim *',
    'go test *',
    'python3 build.py',
    'sort *',
    'bash *',
    'sudo *',
  ],
}

export const RULES: readonly Rule[] = Object.entries(patterns).flatMap(([effect, list]) =>
  list.map((shell, at) => ({
    id: `${effect}-${at}`,
    effect: effect as RuleEffect,
    match: { shell },
    origin: effect === 'allow' ? ('user' as const) : ('deployment' as const),
    createdAt: 0,
  })),
)
