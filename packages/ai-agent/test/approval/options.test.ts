/**
 * Options of a question: from the call, exactly the remembered rule, and enough that the same call
 * is not asked again.
 */
import type { Rule } from '@sandlot/shared/chat/rules'
import { expect, test } from 'vitest'
import { judge } from '../../src/approval/engine.ts'
import { type Remembering, approvalOptions } from '../../src/approval/options.ts'
import type { CallRequest, RuleRequest } from '../../src/approval/request.ts'
import { programs } from './corpus/programs.ts'
import { structure } from './corpus/structure.ts'
import { words } from './corpus/words.ts'

const call = (ask: RuleRequest, kind: CallRequest['kind'] = 'execute'): CallRequest => ({
  tool: 'some_tool',
  kind,
  readOnly: false,
  asks: [ask],
})
const shell = (command: string): CallRequest => call({ kind: 'shell', command })
const offered = (request: CallRequest, most: Remembering = 'always', rules: Rule[] = []) =>
  approvalOptions(request, judge(request, rules, 'manual'), most).map(({ name, remembers }) => [
    name,
    remembers?.rules,
  ])

test('a command that says what it does: the command itself, and its like', () => {
  expect(offered(shell('npm test -- --watch'))).toEqual([
    ['Allow', undefined],
    ['Allow for this message', [{ shell: 'npm test *' }]],
    ['Allow for this chat', [{ shell: 'npm test *' }]],
    ['Always allow exactly this', [{ command: 'npm test -- --watch' }]],
    ['Always allow commands that begin with npm test', [{ shell: 'npm test *' }]],
    ['Deny', undefined],
  ])
  expect(offered(shell('npm run build && git add -A | cat')).at(4)).toEqual([
    'Always allow commands that begin with npm run build and commands that begin with git add',
    [{ shell: 'npm run build *' }, { shell: 'git add *' }],
  ])
})

test.each([
  'rm -rf build',
  'python3 x.py',
  "bash -c 'x'",
  'sudo npm test',
  './x',
  'curl example.org',
  'git -c a=b push',
  '$X',
  'npm test > x',
])('%s: only itself can be remembered', (command) => {
  expect(offered(shell(command))).toEqual([
    ['Allow', undefined],
    ['Allow for this message', [{ command }]],
    ['Allow for this chat', [{ command }]],
    ['Always allow exactly this', [{ command }]],
    ['Deny', undefined],
  ])
})

test('what does not show itself whole is allowed once, or not', () => {
  expect(offered(shell('touch \u202Ex'))).toEqual([
    ['Allow', undefined],
    ['Deny', undefined],
  ])
  expect(offered(shell(`touch ${'x'.repeat(3_000)}`)).map(([name]) => name)).not.toContain(
    'Always allow exactly this',
  )
})

test('what a rule asks about, and where nothing may be remembered: once, or not', () => {
  const ask: Rule = { id: 'r', effect: 'ask', match: { shell: 'npm *' }, origin: 'deployment', createdAt: 0 }
  const once = [
    ['Allow', undefined],
    ['Deny', undefined],
  ]
  expect(offered(shell('npm test'), 'always', [ask])).toEqual(once)
  expect(offered(shell('npm test'), 'never')).toEqual(once)
  expect(offered(shell('npm test'), 'session')).toHaveLength(4)
})

test('files, hosts and tools', () => {
  const edit = call({ kind: 'file', access: 'write', path: 'src/deep/a.ts' }, 'edit')
  expect(offered(edit)).toEqual([
    ['Allow', undefined],
    ['Allow for this message', [{ file: '/workspace/**', access: 'write' }]],
    ['Allow for this chat', [{ file: '/workspace/**', access: 'write' }]],
    [
      'Always allow writing /workspace/src/deep/a.ts',
      [{ file: '/workspace/src/deep/a.ts', access: 'write' }],
    ],
    ['Always allow writing /workspace/src/deep/**', [{ file: '/workspace/src/deep/**', access: 'write' }]],
    ['Deny', undefined],
  ])
  const orders = call({ kind: 'file', access: 'write', path: '.git/config' }, 'edit')
  expect(offered(orders)).toEqual([
    ['Allow', undefined],
    ['Allow for this message', [{ file: '/workspace/.git/config', access: 'write' }]],
    ['Allow for this chat', [{ file: '/workspace/.git/config', access: 'write' }]],
    ['Deny', undefined],
  ])
  expect(offered(call({ kind: 'host', host: 'example.org', port: 443 }, 'fetch'))[2]).toEqual([
    'Always allow the host example.org:443',
    [{ host: 'example.org:443' }],
  ])
  expect(offered({ tool: 'a::b', kind: 'other', readOnly: false, asks: [] })[3]).toEqual([
    'Always allow the tool a::b',
    [{ tool: 'a::b' }],
  ])
})

test('whatever is offered to be remembered covers the call that it was made from', () => {
  const requests = [words, structure, programs].flat().map(([command]) => shell(command))
  requests.push(call({ kind: 'file', access: 'write', path: 'src/a.ts' }, 'edit'))
  requests.push(call({ kind: 'file', access: 'write', path: '.git/config' }, 'edit'))
  requests.push(call({ kind: 'host', host: 'example.org' }, 'fetch'))
  let remembered = 0
  for (const request of requests) {
    const judgement = judge(request, [], 'manual')
    if (judgement.verdict !== 'ask') continue
    for (const option of approvalOptions(request, judgement, 'always')) {
      if (option.remembers === undefined) continue
      const rules = option.remembers.rules.map((match, at): Rule => ({
        id: `${at}`,
        effect: 'allow',
        match,
        origin: 'user',
        createdAt: 0,
      }))
      remembered++
      expect([request, option.name, judge(request, rules, 'manual').verdict]).toEqual([
        request,
        option.name,
        'allow',
      ])
    }
  }
  expect(remembered).toBeGreaterThan(300)
})
