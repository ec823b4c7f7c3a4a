import { runChecks } from '../checks.ts'
import type { Command } from '../context.ts'

/** Numbered checks of this machine and this configuration; each failure comes with what mends it. */
export const doctor: Command = async ({ config, args, print }) => {
  const findings = await runChecks(config)
  const failed = findings.filter((finding) => !finding.ok).length
  if (args.includes('--json')) {
    print(JSON.stringify({ ok: failed === 0, checks: findings }, null, 2))
    return failed === 0 ? 0 : 1
  }
  for (const [index, finding] of findings.entries()) {
    print(`${index + 1}. ${finding.ok ? '✓' : '✗'} ${finding.name}: ${finding.message}`)
    if (finding.ok) for (const warning of finding.warnings) print(`   ! ${warning}`)
    else print(`   → ${finding.fix}`)
  }
  print(failed === 0 ? 'Everything is in order.' : `${failed} of ${findings.length} checks failed.`)
  return failed === 0 ? 0 : 1
}
