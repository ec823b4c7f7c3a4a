/** Whether a rule that somebody has written can ever be compared with anything. */
import type { RuleMatch } from '@sandlot/shared/rules'
import { hostPatternProblem } from './hosts.ts'
import { pathPatternProblem } from './path-pattern.ts'
import { patternProblem } from './shell/pattern.ts'

/** What is wrong with it and how it is written; undefined when it is fine. */
export function matchProblem(match: RuleMatch): string | undefined {
  if ('shell' in match) return patternProblem(match.shell)
  if ('host' in match) {
    const problem = hostPatternProblem(match.host)
    return problem === undefined
      ? undefined
      : `${problem}; write example.org, *.example.org or example.org:8080`
  }
  if ('file' in match) {
    return /(^|\/)\.\.(\/|$)/.test(match.file)
      ? 'must not climb with ..; write a path of the workspace, like secrets/** or /workspace/secrets/**'
      : pathPatternProblem(match.file)
  }
  if ('tool' in match && /\*./.test(match.tool))
    return 'has * before its end; write name, server::name or server::*'
  return undefined
}
