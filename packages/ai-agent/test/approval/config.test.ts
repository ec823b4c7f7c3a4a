import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { readConfigFile } from '../../src/config/file.ts'
import { ruleSettings } from '../../src/approval/config.ts'

function read(rules: unknown): { settings: ReturnType<typeof ruleSettings>; problems: string[] } {
  const folder = mkdtempSync(join(tmpdir(), 'sandlot-rules-'))
  onTestFinished(() => rmSync(folder, { recursive: true }))
  const path = join(folder, 'sandlot.json')
  writeFileSync(path, JSON.stringify({ rules }))
  const problems: string[] = []
  const file = readConfigFile(path, true, problems)
  return {
    settings: ruleSettings(file.rules),
    problems: problems.map((problem) => problem.replace(path, 'file')),
  }
}

test('everybody’s rules, in the order of their strength, under ids that a log can name', () => {
  const { settings, problems } = read({
    allow: [{ tool: 'flights-mcp::*' }],
    deny: [{ shell: 'curl *' }, { file: 'secrets/**', access: 'read' }],
    remember: 'session',
    expireDays: 2,
  })
  expect(problems).toEqual([])
  expect(settings).toMatchObject({ remember: 'session', lastMs: 2 * 86_400_000 })
  expect(settings.deployment.map(({ id, effect, match }) => [id, effect, match])).toEqual([
    ['deployment:deny:1', 'deny', { shell: 'curl *' }],
    ['deployment:deny:2', 'deny', { file: 'secrets/**', access: 'read' }],
    ['deployment:allow:1', 'allow', { tool: 'flights-mcp::*' }],
  ])
})

test('without the section nothing is ruled, and everything may be remembered', () => {
  expect(ruleSettings(undefined)).toEqual({ deployment: [], remember: 'always', lastMs: undefined })
})

test('a rule that could never match is a problem with its place', () => {
  const { problems } = read({
    deny: [
      { shell: 'a; b' },
      { shell: 'X=1 a' },
      { shell: 'a > b' },
      { host: '10.0.0.1' },
      { file: '../x' },
      { tool: 'a*b' },
      { shell: "'" },
    ],
    ask: [{ what: 'x' }],
    remember: 'for ever',
  })
  const places = problems.map((problem) => /^file: (rules\.\w+(?:\.\d+)?)/.exec(problem)?.[1])
  expect(places).toEqual([
    'rules.deny.0',
    'rules.deny.1',
    'rules.deny.2',
    'rules.deny.3',
    'rules.deny.4',
    'rules.deny.5',
    'rules.deny.6',
    'rules.ask.0',
    'rules.remember',
  ])
  expect(problems[0]).toContain('must be one simple command, like npm test *')
})
