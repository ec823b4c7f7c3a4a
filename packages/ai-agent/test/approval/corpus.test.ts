/** Every command of the corpus gets the verdict that is written beside it. */
import type { Rule, Verdict } from '@sandlot/shared/chat/rules'
import { expect, test } from 'vitest'
import { judge } from '../../src/approval/engine.ts'
import type { CallRequest } from '../../src/approval/request.ts'
import { RULES } from './corpus/corpus.ts'
import { effects } from './corpus/effects.ts'
import { misread } from './corpus/misread.ts'
import { options } from './corpus/options.ts'
import { programs } from './corpus/programs.ts'
import { structure } from './corpus/structure.ts'
import { words } from './corpus/words.ts'

const corpus = { words, structure, programs, options, effects, misread }

const shell = (command: string): CallRequest => ({
  tool: 'run_shell_command',
  kind: 'execute',
  readOnly: false,
  asks: [{ kind: 'shell', command }],
})

for (const [name, cases] of Object.entries(corpus)) {
  test(`bypass corpus: ${name}`, () => {
    const wrong = cases.flatMap(([command, expected]) => {
      const { verdict, why } = judge(shell(command), RULES, 'manual')
      const known = expected === 'allow' || why.length > 0
      return verdict === expected && known ? [] : [{ command: command.slice(0, 200), expected, verdict, why }]
    })
    expect(wrong).toEqual([])
  })
}

/** Today's numbers. More are welcome, and raise it; fewer means that some were lost. */
const THERE: Record<Exclude<Verdict, 'block'>, number> = { deny: 194, ask: 432, allow: 136 }

test.each(Object.entries(THERE))(
  'of the corpus no command with the verdict %s was lost: %i',
  (verdict, there) => {
    const cases = Object.values(corpus).flat()
    expect(cases.filter(([, expected]) => expected === verdict).length).toBeGreaterThanOrEqual(there)
  },
)

test('no command of the corpus is there twice', () => {
  const commands = Object.values(corpus).flatMap((cases) => cases.map(([command]) => command))
  expect(new Set(commands).size).toBe(commands.length)
})

test('in yolo nothing is more permissive than a rule: what is denied stays denied, what may be denied asks', () => {
  const denies = RULES.filter(({ effect }) => effect === 'deny')
  for (const [command, expected] of Object.values(corpus).flat()) {
    const { verdict } = judge(shell(command), denies, 'yolo')
    if (expected === 'deny') expect([command, verdict]).toEqual([command, 'deny'])
  }
  expect(judge(shell('$X y'), denies, 'yolo').verdict).toBe('ask')
  expect(judge(shell('touch y'), denies, 'yolo').verdict).toBe('allow')
  expect(judge(shell('$X y'), [], 'yolo').verdict).toBe('allow')
})

test('a rule for all of git means no setting by which it runs something, also where a word hides that it is one', () => {
  const rules: Rule[] = [
    { id: 'g', effect: 'allow', match: { shell: 'git *' }, origin: 'user', createdAt: 0 },
  ]
  const verdict = (command: string) => judge(shell(command), rules, 'manual').verdict
  for (const command of [
    `git co"$x" alias.st '!touch y'`,
    `git conf?g alias.st '!touch y'`,
    `git co"$x" c"$y" 'touch y'`,
    `git cl"$x" -u /tmp/x y`,
  ])
    expect([command, verdict(command)]).toEqual([command, 'ask'])
  for (const command of ['git add c*', 'git add c* docs/x.md', 'git switch main', 'git config user.name ada'])
    expect([command, verdict(command)]).toEqual([command, 'allow'])
})
