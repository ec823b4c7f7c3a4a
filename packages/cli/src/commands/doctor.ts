import type { Finding, Group } from '@sandlot/shared/base/finding'
import { runChecks } from '../checks/checks.ts'
import type { Command } from '../context.ts'

const TITLES: Record<Group, string> = {
  must: 'Required',
  warn: 'Recommended: stronger isolation between sandboxes and the host',
  report: 'For information',
}

/** Numbered checks, each failure with its remedy. Exit code 1 when a required one has failed. */
export const doctor: Command = async ({ config, args, print }) => {
  const unknown = args.find((arg) => arg !== '--json')
  if (unknown !== undefined) {
    print(`Unknown argument "${unknown}". Usage: ./sandlot doctor [--json]`)
    return 2
  }
  const findings = (await runChecks(config)).map((finding, place) => ({ number: place + 1, ...finding }))
  const failed = findings.filter(({ group, state }) => group === 'must' && state === 'failed').length
  if (args.includes('--json')) {
    print(JSON.stringify({ ok: failed === 0, checks: findings }, undefined, 2))
    return failed === 0 ? 0 : 1
  }
  let group: Group | undefined
  for (const finding of findings) {
    if (finding.group !== group) {
      group = finding.group
      print(`\n${TITLES[group]}`)
    }
    print(`${String(finding.number).padStart(3)}. ${mark(finding)} ${finding.name}: ${finding.message}`)
    if (finding.state === 'failed') print(`       → ${finding.fix}`)
  }
  const warnings = findings.filter(({ group: of, state }) => of === 'warn' && state === 'failed').length
  print('')
  print(
    failed === 0
      ? `All required checks passed${warnings === 0 ? '' : `; ${warnings} recommended ${warnings === 1 ? 'check' : 'checks'} failed`}.`
      : `${failed} required ${failed === 1 ? 'check' : 'checks'} failed, of ${findings.length} checks. The → lines say how to fix them.`,
  )
  return failed === 0 ? 0 : 1
}

function mark(finding: Finding): string {
  if (finding.state === 'ok') return '✓'
  if (finding.state === 'unknown') return '?'
  return finding.group === 'must' ? '✗' : '!'
}
