import type { Mode } from '@sandlot/shared/chat/mode'
import type { ToolKind } from '@sandlot/shared/chat/call'
import type { Rule, RuleEffect, RuleMatch } from '@sandlot/shared/chat/rules'
import { describe, expect, test } from 'vitest'
import { judge } from '../../src/approval/engine.ts'
import type { CallRequest, RuleRequest } from '../../src/approval/request.ts'

let made = 0
const rule = (effect: RuleEffect, match: RuleMatch, origin: Rule['origin'] = 'user'): Rule => ({
  id: `r${++made}`,
  effect,
  match,
  origin,
  createdAt: 0,
})
const asking = (
  ask: RuleRequest | RuleRequest[],
  kind: ToolKind = 'execute',
  readOnly = false,
): CallRequest => ({
  tool: 'some_tool',
  kind,
  readOnly,
  asks: [ask].flat(),
})
const shell = (command: string): CallRequest => asking({ kind: 'shell', command })
const write = (path: string): CallRequest => asking({ kind: 'file', access: 'write', path }, 'edit')
const read = (path: string): CallRequest => asking({ kind: 'file', access: 'read', path }, 'read', true)
const host = (name: string, port?: number): CallRequest => asking({ kind: 'host', host: name, port }, 'fetch')
const tool = (id: string, readOnly = false, kind: ToolKind = 'other'): CallRequest => ({
  tool: id,
  kind,
  readOnly,
  asks: [],
})
const verdict = (request: CallRequest, rules: Rule[] = [], mode: Mode = 'manual'): string =>
  judge(request, rules, mode).verdict

describe('precedence', () => {
  const request = host('example.org')
  const allow = rule('allow', { host: 'example.org' })
  const ask = rule('ask', { host: 'example.org' })
  const deny = rule('deny', { host: 'example.org' })

  test('built-in blocks > deny > ask > allow > the tool > the mode, whatever the order of the rules', () => {
    expect(verdict(request)).toBe('ask')
    // No mode widens what the sandbox can reach.
    expect(verdict(request, [], 'yolo')).toBe('ask')
    expect(verdict(request, [allow])).toBe('allow')
    expect(verdict(request, [allow, ask], 'yolo')).toBe('ask')
    expect(verdict(request, [allow, ask, deny])).toBe('deny')
    expect(verdict(request, [deny, ask, allow])).toBe('deny')
    expect(verdict(host('169.254.169.254'), [rule('allow', { tool: '*' })], 'yolo')).toBe('block')
  })

  test('a rule of one’s own never allows what the deployment denies or asks about', () => {
    const mine = [
      rule('allow', { shell: '*' }),
      rule('allow', { tool: '*' }),
      rule('allow', { command: 'git push' }),
    ]
    expect(verdict(shell('git push'), mine)).toBe('allow')
    expect(verdict(shell('git push'), [...mine, rule('deny', { shell: 'git push *' }, 'deployment')])).toBe(
      'deny',
    )
    expect(verdict(shell('git push'), [...mine, rule('ask', { shell: 'git push *' }, 'deployment')])).toBe(
      'ask',
    )
    expect(verdict(shell('git push'), [...mine, rule('ask', { tool: 'some_tool' }, 'deployment')])).toBe(
      'ask',
    )
  })

  test('the strictest of several parts decides, and the reasons are about that part', () => {
    const rules = [rule('deny', { shell: 'rm *' }, 'deployment'), rule('allow', { shell: 'npm test *' })]
    const judged = judge(shell('npm test && touch x && rm -rf build'), rules, 'manual')
    expect(judged).toMatchObject({
      verdict: 'deny',
      why: [
        {
          part: 'rm -rf build',
          ruleId: rules[0]?.id,
          because: expect.stringContaining('denies commands that begin with rm'),
        },
      ],
      open: [],
    })
    const open = judge(shell('npm test && touch x'), rules, 'manual')
    expect(open.why).toEqual([{ part: 'touch x', because: 'may change something' }])
    expect(open.open.map(({ text }) => text)).toEqual(['touch x'])
  })

  test('what a rule asks about cannot be remembered away', () => {
    expect(judge(shell('npm publish'), [rule('ask', { shell: 'npm publish *' })], 'manual').open).toEqual([])
  })
})

describe('files', () => {
  test.each<[CallRequest, Mode, string]>([
    [read('src/a.ts'), 'manual', 'allow'],
    [write('src/a.ts'), 'manual', 'ask'],
    [write('src/a.ts'), 'auto-edit', 'allow'],
    [asking({ kind: 'file', access: 'write', path: 'a' }, 'delete'), 'auto-edit', 'ask'],
    [write('src/a.ts'), 'yolo', 'allow'],
  ])('%j in %s', (request, mode, expected) => {
    expect(verdict(request, [], mode)).toBe(expected)
  })

  test.each([
    '.git/config',
    '/workspace/.git/hooks/pre-commit',
    'sub/.git/config',
    'src/../.git/config',
    'evil/HEAD',
    '.gitconfig',
    '.bashrc',
    '.config/git/config',
    '.local/bin/git',
    '.ssh/authorized_keys',
    '.npmrc',
  ])(
    '%s decides what later commands do: it asks in auto-edit, and only a rule that names it allows it',
    (path) => {
      expect(verdict(write(path), [], 'auto-edit')).toBe('ask')
      const broad = [
        rule('allow', { tool: '*' }),
        rule('allow', { file: '**' }),
        rule('allow', { file: '/workspace/**' }),
      ]
      expect(verdict(write(path), broad, 'auto-edit')).toBe('ask')
      expect(verdict(write(path), [rule('allow', { file: path.replace('src/../', '') })], 'auto-edit')).toBe(
        'allow',
      )
      expect(verdict(write(path), [], 'yolo')).toBe('allow')
    },
  )

  test('patterns: within a name, over folders, for reading or writing', () => {
    const secret = [rule('deny', { file: 'secrets/**' }), rule('deny', { file: '*.pem', access: 'write' })]
    expect(verdict(read('secrets/a/b'), secret)).toBe('deny')
    expect(verdict(read('secrets'), secret)).toBe('deny')
    expect(verdict(read('src/../secrets/a'), secret)).toBe('deny')
    expect(verdict(read('secretsx/a'), secret)).toBe('allow')
    expect(verdict(read('a.pem'), secret)).toBe('allow')
    expect(verdict(write('a.pem'), secret, 'yolo')).toBe('deny')
    expect(verdict(write('sub/a.pem'), secret, 'yolo')).toBe('allow')
    expect(verdict(write('a+b.txt'), [rule('deny', { file: 'a+b.txt' })])).toBe('deny')
    expect(verdict(write('aab.txt'), [rule('deny', { file: 'a+b.txt' })], 'yolo')).toBe('allow')
    expect(verdict(write('x/deep/y/z.ts'), [rule('deny', { file: 'x/**/z.?s' })])).toBe('deny')
  })

  test('a search below a folder may meet what a rule denies', () => {
    const search = (path: string): CallRequest =>
      asking({ kind: 'file', access: 'read', path, below: true }, 'search', true)
    const rules = [rule('deny', { file: 'secrets/**' })]
    expect(verdict(search('.'), rules)).toBe('ask')
    expect(verdict(search('src'), rules)).toBe('allow')
    expect(verdict(search('secrets/a'), rules)).toBe('deny')
    expect(verdict(search('.'), [rule('deny', { file: 'secrets/**', access: 'write' })])).toBe('allow')
  })

  test('the shell is held to rules about files as far as its words are known', () => {
    const rules = [rule('deny', { file: 'secrets/**' })]
    expect(verdict(shell('cat secrets/key'), rules, 'yolo')).toBe('deny')
    expect(verdict(shell('cat /workspace/secrets/key'), rules, 'yolo')).toBe('deny')
    expect(verdict(shell('cp --target-directory=secrets x'), rules, 'yolo')).toBe('deny')
    expect(verdict(shell('echo x > secrets/key'), rules, 'yolo')).toBe('deny')
    expect(verdict(shell('cat < secrets/key'), rules, 'yolo')).toBe('deny')
    expect(verdict(shell('cat "$X"'), rules, 'yolo')).toBe('ask')
    expect(verdict(shell('cat *'), rules, 'yolo')).toBe('ask')
    expect(verdict(shell('grep -r x .'), rules)).toBe('ask')
    expect(verdict(shell('echo hello'), rules)).toBe('allow')
  })

  test('a redirection is covered by a rule for its file only where the path is certain', () => {
    const rules = [rule('allow', { file: '/workspace/out/**', access: 'write' })]
    expect(verdict(shell('ls > /workspace/out/list'), rules)).toBe('allow')
    expect(verdict(shell('ls > out/list'), rules)).toBe('ask')
    expect(verdict(shell('ls > /workspace/out/../list'), rules)).toBe('ask')
    expect(verdict(shell('ls > "/workspace/out/$X"'), rules)).toBe('ask')
    expect(verdict(shell('ls > /workspace/out/.git/config'), rules)).toBe('ask')
  })
})

describe('hosts', () => {
  test.each([
    'localhost',
    '127.0.0.1',
    '169.254.169.254',
    '10.0.0.1',
    '2130706433',
    '0x7f.1',
    '[::1]',
    'db.internal',
    'x.local',
    '',
  ])('nobody can allow %j: it does not lead to the public internet', (name) => {
    expect(verdict(host(name), [rule('allow', { tool: '*' })], 'yolo')).toBe('block')
  })

  test('names, everything below a name, ports, spelling', () => {
    const rules = [rule('allow', { host: '*.example.org' }), rule('allow', { host: 'example.com:8443' })]
    expect(verdict(host('api.example.org', 443), rules)).toBe('allow')
    expect(verdict(host('API.Example.ORG.', 443), rules)).toBe('allow')
    expect(verdict(host('example.org'), rules)).toBe('ask')
    expect(verdict(host('notexample.org'), rules)).toBe('ask')
    expect(verdict(host('example.com', 8443), rules)).toBe('allow')
    expect(verdict(host('example.com', 443), rules)).toBe('ask')
  })

  test('a URL among the words of a command', () => {
    const rules = [rule('deny', { host: '*.evil.example' })]
    expect(verdict(shell('curl https://x.evil.example/a'), rules, 'yolo')).toBe('deny')
    expect(verdict(shell('git clone git@x.evil.example:a/b'), rules, 'yolo')).toBe('deny')
    expect(verdict(shell('curl https://example.org'), rules, 'yolo')).toBe('allow')
  })
})

describe('tools', () => {
  test.each<[CallRequest, Mode, string]>([
    [tool('server::look', true), 'manual', 'allow'],
    [tool('server::change'), 'manual', 'ask'],
    [tool('server::change'), 'auto-edit', 'ask'],
    [tool('server::edit', false, 'edit'), 'auto-edit', 'allow'],
    [tool('server::change'), 'yolo', 'allow'],
  ])('%j in %s', (request, mode, expected) => {
    expect(verdict(request, [], mode)).toBe(expected)
  })

  test('by id, all of a server, and every part of a call of theirs', () => {
    expect(verdict(tool('a::b'), [rule('allow', { tool: 'a::b' })])).toBe('allow')
    expect(verdict(tool('a::b'), [rule('allow', { tool: 'a::*' })])).toBe('allow')
    expect(verdict(tool('ab::b'), [rule('allow', { tool: 'a::*' })])).toBe('ask')
    expect(verdict(tool('a::b', true), [rule('deny', { tool: 'a::*' })])).toBe('deny')
    expect(verdict(shell('$X'), [rule('allow', { tool: 'some_tool' })])).toBe('allow')
    expect(verdict(shell('ls'), [rule('deny', { tool: 'some_tool' })], 'yolo')).toBe('deny')
  })

  test('a whole command line, letter for letter', () => {
    const rules = [rule('allow', { command: 'x=1; $y > z' })]
    expect(verdict(shell('x=1; $y > z'), rules)).toBe('allow')
    expect(verdict(shell('x=1; $y > z '), rules)).toBe('ask')
    expect(verdict(shell('ls; rm x'), [rule('deny', { command: 'ls; rm x' })], 'yolo')).toBe('deny')
  })
})
