/** Mode `auto`: between auto-edit and yolo, by what the sandbox has. */
import { MODES, type Mode } from '@sandlot/shared/chat/mode'
import { type Rule, type RuleMatch, VERDICTS } from '@sandlot/shared/chat/rules'
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { type ExternalAccess, judge } from '../../src/approval/engine.ts'
import type { CallRequest, RuleRequest } from '../../src/approval/request.ts'
import { lossKey } from '../../src/approval/shell/loss.ts'
import { RULES } from './corpus/corpus.ts'
import { effects } from './corpus/effects.ts'
import { misread } from './corpus/misread.ts'
import { options } from './corpus/options.ts'
import { programs } from './corpus/programs.ts'
import { structure } from './corpus/structure.ts'
import { words } from './corpus/words.ts'

const CLOSED: ExternalAccess = { externalAccess: undefined }
const shell = (command: string): CallRequest => request([{ kind: 'shell', command }])
const request = (
  asks: RuleRequest[],
  kind: CallRequest['kind'] = 'execute',
  tool = 'a_tool',
): CallRequest => ({
  tool,
  kind,
  readOnly: false,
  asks,
})
const file = (path: string, kind: CallRequest['kind']): CallRequest =>
  request([{ kind: 'file', access: 'write', path }], kind)
const rule = (effect: Rule['effect'], match: RuleMatch): Rule => ({
  id: `${effect} ${JSON.stringify(match)}`,
  effect,
  match,
  origin: 'user',
  createdAt: 0,
})
const inAuto = (call: CallRequest, reach: ExternalAccess | undefined = CLOSED, rules: Rule[] = []) =>
  judge(call, rules, 'auto', reach)

describe('where the sandbox reaches nothing', () => {
  test.each([
    'npm test',
    'make && ./run --all',
    'python3 clean.py',
    'touch a; mkdir -p b/c; echo x >> log',
    'ls | sort > /dev/null',
    'git commit -am wip && git switch main',
    'git rm old.ts',
    '$TOOL --version',
    '$TOOL build && git commit -m x',
    'rsync --version && cp --help',
    'GIT_EDITOR=true git rebase --continue',
    'git -c core.pager=cat -c user.name="$A" log',
    "sed '/x/a new line' a",
    `awk -F"$S" '{print $1}' a`,
    'sort -t"$S" -k2 a && awk --version',
    'ln -s "$HOME/a" b',
  ])('%s runs', (command) => {
    expect(inAuto(shell(command))).toMatchObject({ verdict: 'allow', why: [] })
  })

  test('so does an edit, and a new file that programs take orders from asks only for what is there', () => {
    expect(inAuto(file('src/a.ts', 'edit')).verdict).toBe('allow')
    const orders = inAuto(file('.bashrc', 'edit'))
    expect(orders).toMatchObject({
      verdict: 'ask',
      atRisk: [{ does: 'overwrites', paths: ['/workspace/.bashrc'] }],
    })
    expect(inAuto(file('.bashrc', 'edit'), { ...CLOSED, lost: new Set() }).verdict).toBe('allow')
  })

  test.each<[string, string[]]>([
    ['rm -rf build', ['deletes build']],
    ['cd web && rm -f a.txt', ['deletes a.txt web/a.txt']],
    ['cd /workspace/web && rm a', ['deletes a /workspace/web/a']],
    ['echo x > out.txt', ['overwrites out.txt']],
    ['mv a/one b', ['moves a/one', 'replaces b', 'overwrites b/one']],
    ['cp -r src dist', ['replaces dist', 'overwrites dist/src']],
    ['sed -i s/a/b/ x.txt', ['overwrites x.txt']],
    ['cat x | tee y', ['overwrites y']],
    ['timeout 5 rm x', ['deletes x']],
    ["bash -c 'rm x'", ['deletes x']],
    ['git reset --hard', ['discards .']],
    ['git -C sub checkout -- .', ['checks sub']],
    ['git -c core.pager=cat restore a.ts', ['restores a.ts']],
    ['dd if=a of=b', ['overwrites b']],
    ['git reset --hard "$REV"', ['resets .']],
    ['zip -r a.zip "$DIR" -x b', ['overwrites a.zip']],
    ['wget http://a/b.tgz; tar xf b.tgz', ['overwrites .']],
    ['tar xf b.tgz; rm b.tgz', ['untars b.tgz', 'deletes b.tgz']],
    ['tree -o a', ['overwrites a']],
    ['scp host:a .', ['replaces .', 'overwrites a']],
    ['rsync -rt host:a/b c', ['replaces c', 'overwrites c/b']],
    ['rsync -a host: c', ['overwrites c']],
  ])('%s waits for what git holds', (command, expected) => {
    const { verdict, atRisk } = inAuto(shell(command))
    expect(verdict).toBe('ask')
    expect(atRisk.map(({ does, paths }) => `${does} ${paths?.join(' ')}`)).toEqual(expected)
    expect(inAuto(shell(command), { ...CLOSED, lost: new Set() }).verdict).toBe('allow')
    const lost = inAuto(shell(command), { ...CLOSED, lost: new Set(atRisk.map(lossKey)) })
    expect(lost).toMatchObject({ verdict: 'ask', atRisk: [] })
    expect(lost.why[0]?.because).toMatch(/git does not hold|not committed/)
  })

  test.each([
    'rm -rf "$DIR"',
    'rm *.o',
    'find . -name x -delete',
    'ls | xargs rm',
    'git clean -fdx',
    'git stash drop',
    'cd "$X" && rm a',
    'echo x > "$OUT"',
    'sort -o"$S" a',
    'strace -o x true',
    'gawk -ox 1 y',
    'ls | cpio -o -O x',
    'git whatchanged --output=x',
    'git clone -qu "rm x" y z',
    'git -c core.worktree=a checkout .',
    'git -c core.pager="$A" log',
    'GIT_WORK_TREE=a git checkout .',
  ])('%s asks at once: what it deletes is not known', (command) => {
    const judged = inAuto(shell(command))
    expect(judged).toMatchObject({ verdict: 'ask', atRisk: [] })
    expect(
      judged.why.some(({ because }) => because === 'deletes or overwrites what is not known before it runs'),
    ).toBe(true)
  })

  test('a tool of an MCP server, a host and a tool that names nothing ask', () => {
    expect(inAuto(request([], 'other', 'mail::send')).why[0]?.because).toBe('is a tool of an MCP server')
    expect(inAuto(request([], 'other', 'own')).verdict).toBe('ask')
    expect(inAuto(request([{ kind: 'host', host: 'example.org' }], 'fetch')).verdict).toBe('ask')
  })

  test('rules that deny and ask hold, and one that allows covers what would be lost', () => {
    expect(inAuto(shell('npm publish'), CLOSED, [rule('deny', { shell: 'npm publish *' })]).verdict).toBe(
      'deny',
    )
    expect(inAuto(shell('npm publish'), CLOSED, [rule('ask', { shell: 'npm publish *' })]).verdict).toBe(
      'ask',
    )
    expect(inAuto(shell('rm -rf build'), CLOSED, [rule('allow', { shell: 'rm -rf build' })]).verdict).toBe(
      'allow',
    )
  })
})

test('a sandbox with a network has commands ask, with the reason', () => {
  const judged = inAuto(shell('npm test'), { externalAccess: 'has network access' })
  expect(judged.verdict).toBe('ask')
  expect(judged.why).toEqual([
    { part: 'npm test', because: 'may change something, and this sandbox has network access' },
  ])
  expect(inAuto(file('a.ts', 'edit'), { externalAccess: 'has network access' }).verdict).toBe('allow')
  expect(judge(shell('npm test'), [], 'auto').verdict).toBe('ask')
})

test('what runs in a mode runs in every higher one, and auto allows nothing that yolo does not', () => {
  const commands = [words, structure, programs, options, effects, misread].flat().map(([command]) => command)
  const path = fc.constantFrom(
    'a.ts',
    '.git/config',
    '.bashrc',
    'src/deep/b.ts',
    '.tool-outputs/x',
    'AGENTS.md',
  )
  const ask = fc.oneof(
    fc.constantFrom(...commands).map((command): RuleRequest => ({ kind: 'shell', command })),
    fc
      .constantFrom('rm x', 'git reset --hard', 'echo > y', 'rm "$X"')
      .map((command): RuleRequest => ({ kind: 'shell', command })),
    fc
      .record({ path, access: fc.constantFrom('read' as const, 'write' as const) })
      .map((one): RuleRequest => ({ kind: 'file', ...one })),
    fc.constantFrom('example.org', '127.0.0.1').map((host): RuleRequest => ({ kind: 'host', host })),
  )
  const calls = fc.record({
    tool: fc.constantFrom('run_shell_command', 'server::change'),
    kind: fc.constantFrom('execute' as const, 'edit' as const, 'delete' as const, 'other' as const),
    readOnly: fc.boolean(),
    asks: fc.array(ask, { maxLength: 2 }),
  })
  const reaches = fc.record({
    externalAccess: fc.constantFrom(undefined, 'has network access'),
    lost: fc.constantFrom(undefined, new Set<string>()),
  })
  const rules = fc.subarray([...RULES, rule('allow', { shell: 'rm *' }), rule('deny', { file: 'src/**' })])
  fc.assert(
    fc.property(calls, reaches, rules, (call, reach, held) => {
      const strictness = MODES.map((mode: Mode) => VERDICTS.indexOf(judge(call, held, mode, reach).verdict))
      expect(strictness).toEqual(strictness.toSorted((a, b) => b - a))
    }),
    { numRuns: 400 },
  )
})
