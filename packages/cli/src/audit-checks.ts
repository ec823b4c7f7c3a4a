import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { type Finding, failed, ok } from '@sandlot/sandbox/controller/finding'
import { messageOf } from '@sandlot/shared/errors'
import { auditChains } from '@sandlot/shared/office/audit'
import { childEnvironment } from './child-env.ts'
import type { CliConfig } from './config.ts'
import { run } from './run.ts'

const FIX = 'docs/audit.md says what to do; the last backup has the lines as they were.'
const NAMES = { agent: 'Audit log of the agent', service: 'Audit log of the service' } as const

/** One finding for each log that there is: every line is as it was written. */
export async function auditChecks(config: CliConfig): Promise<Finding[]> {
  const program = join(config.root, 'packages', 'service', 'dist', 'check-audit.js')
  if (!existsSync(program)) return []
  try {
    const printed = await run(process.execPath, [program], {
      cwd: config.root,
      environment: childEnvironment('service', config.environment),
      fix: FIX,
    })
    return auditChains.parse(JSON.parse(printed)).chains.map(({ source, ...chain }) => {
      const { lines, head, problems, problemCount } = chain
      const [id, name] = [`audit-${source}`, NAMES[source]]
      if (problemCount === 0)
        return ok(
          'must',
          id,
          name,
          `${lines} lines, as they were written; the last is ${head.seq}, hash ${head.hash}`,
        )
      const more = problemCount > problems.length ? ` … and ${problemCount - problems.length} more` : ''
      return failed('must', id, name, `${problems.join(' ')}${more}`, FIX)
    })
  } catch (error) {
    return [failed('must', 'audit', 'Audit log', `It could not be read: ${messageOf(error)}`, FIX)]
  }
}
