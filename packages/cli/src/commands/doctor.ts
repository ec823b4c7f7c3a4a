import type { Finding, Group } from '@sandlot/shared/base/finding'
import { runChecks } from '../checks/checks.ts'
import type { Command } from '../context.ts'

const TITLES: Record<Group, string> = {
  must: 'These must hold',
  warn: 'With these there is more between a sandbox and the host',
  report: 'Worth knowing',
}

/**
 * Numbered checks of this machine and this configuration; each failure comes with its remedy. Exit
 * code 1 when one of the first group has failed.
 */
export const doctor: Command = async ({ config, args, print }) => {
  const unknown = args.find((arg) => arg !== '--json')
  if (unknown !== undefined) {
    print(`doctor knows no "${unknown}". Usage: ./sandlot doctor [--json]`)
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
      ? `Everything that must hold holds${warnings === 0 ? '' : `; ${warnings} could be better`}.`
      : `${failed} of ${findings.length} checks failed that must hold; each says what mends it.`,
  )
  return failed === 0 ? 0 : 1
}

function mark(finding: Finding): string {
  if (finding.state === 'ok') return '✓'
  if (finding.state === 'unknown') return '?'
  return finding.group === 'must' ? '✗' : '!'
}
