/** What the tools that use ripgrep share. It runs in the sandbox as an argument vector: no shell reads a pattern. */
import { CallFailure } from './call-failure.ts'
import type { CommandResult } from './sandboxed-tool-executor.ts'
import type { ToolOutcome } from './tool.ts'

/** The same order each time, hidden files too, and neither git's nor our own files. A user's own configuration does not count. */
export const SEARCH_FLAGS = [
  '--no-config',
  '--sort=path',
  '--hidden',
  '--color=never',
  '--glob=!.git',
  '--glob=!/.tool-outputs',
]

/** ripgrep's exit codes: 0 found, 1 nothing found, 2 an error, perhaps beside matches. `nothing`: said when there is nothing. */
export function searchOutcome(result: CommandResult, nothing: string): ToolOutcome {
  const text = result.text.replaceAll(/^\.\//gm, '')
  const info = result.info === undefined ? {} : { outputInfo: result.info }
  if (result.status === 'failed') {
    const forModel = [text, `[${result.message}]`].filter((part) => part !== '').join('\n')
    return { status: 'failed', reason: result.reason, forModel, ...info }
  }
  const code = 'code' in result.exit ? result.exit.code : 2
  if (code === 1 || (code === 0 && text === ''))
    return { status: 'completed', forModel: nothing, exit: { code: 0 } }
  if (code === 2 && /^(rg: )?(regex parse error|error parsing glob|the literal)/m.test(text)) {
    throw new CallFailure('invalid_arguments', `The pattern cannot be used:\n${text}`)
  }
  if (code > 2) throw new CallFailure('tool_error', `The search did not run: ${text}`)
  return { status: 'completed', forModel: text, exit: result.exit, ...info }
}
