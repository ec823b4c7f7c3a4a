import fc from 'fast-check'
import { beforeEach, describe, expect, test } from 'vitest'
import { z } from 'zod'
import { pendingApprovals } from '@sandlot/shared/chat/pending-approvals'
import { emptyTranscript, foldTranscript } from '@sandlot/shared/transcript/transcript'
import { rulesSection } from '../../src/approval/config.ts'
import type { Session } from '../../src/session/session.ts'
import { asWritten, resolveAliases, withAliases } from '../../src/tools/argument-aliases.ts'
import { builtinTools } from '../../src/tools/builtin/index.ts'
import { isZodInput, toolParameters } from '../../src/tools/tool-schema.ts'
import {
  AgentBench,
  ask,
  newSession,
  outcomes,
  textsForModel,
  whenHappened,
} from '../support/agent-fixture.ts'
import { textAnswer, toolCalls, type FakeCall } from '../support/fake-provider.ts'
import { emptySandbox, useSandboxes } from './use-sandboxes.ts'

const inputOf = (name: string) => {
  const input = builtinTools().find((tool) => tool.name === name)?.input
  if (input === undefined || !isZodInput(input)) throw new Error(`${name} has no zod input`)
  return input
}

describe('every built-in tool', () => {
  /** A call that gives every argument, and every member of the objects in lists, its value. */
  const everything = (schema: unknown): unknown => {
    if (schema instanceof z.ZodOptional || schema instanceof z.ZodDefault) return everything(schema.unwrap())
    if (schema instanceof z.ZodArray) return [everything(schema.element)]
    if (!(schema instanceof z.ZodObject)) return 'x'
    return Object.fromEntries(Object.entries(schema.shape).map(([name, one]) => [name, everything(one)]))
  }

  test.each(builtinTools().map((tool) => [tool.name, tool] as const))(
    '%s: an alias shadows no argument',
    (_, { input }) => {
      const given = everything(input) as Record<string, unknown>
      expect(resolveAliases(input, given)).toEqual({ args: given })
    },
  )

  // Argument names of Claude Code, Gemini CLI, Codex, opencode, pi and Anthropic's text editor, and
  // those of openclaw#52164 (file) and hermes-agent#39964 (file_content).
  test.each<[string, Record<string, unknown>, Record<string, unknown>]>([
    ['read_file', { file_path: 'a', offset: 2 }, { path: 'a', offset: 2 }],
    ['read_file', { filePath: 'a' }, { path: 'a' }],
    ['read_file', { file: 'a' }, { path: 'a' }],
    ['write_file', { path: 'a', file_content: 'b' }, { path: 'a', content: 'b' }],
    [
      'edit_file',
      { file_path: 'a', old_string: 'b', new_string: 'c', replace_all: true },
      { path: 'a', old_text: 'b', new_text: 'c', replace_all: true },
    ],
    [
      'edit_file',
      { filePath: 'a', oldString: 'b', newString: 'c', replaceAll: true },
      { path: 'a', old_text: 'b', new_text: 'c', replace_all: true },
    ],
    [
      'edit_file',
      { path: 'a', edits: [{ oldText: 'b', newText: 'c' }] },
      { path: 'a', edits: [{ old_text: 'b', new_text: 'c' }] },
    ],
    ['list_directory', { dir_path: 'a' }, { path: 'a' }],
    ['glob', { pattern: '*', dir_path: 'a' }, { pattern: '*', path: 'a' }],
    [
      'search_text',
      { pattern: 'x', include: '*.ts', '-i': true, '-C': 2 },
      { pattern: 'x', glob: '*.ts', ignore_case: true, context: 2 },
    ],
    ['run_shell_command', { cmd: 'ls', workdir: 'a' }, { command: 'ls', cwd: 'a' }],
    ['run_shell_command', { command: 'ls', run_in_background: true }, { command: 'ls', background: true }],
    ['read_output', { bash_id: 'bg1' }, { id: 'bg1' }],
    [
      'update_plan',
      { plan: [{ step: 'a', status: 'pending' }] },
      { entries: [{ content: 'a', status: 'pending' }] },
    ],
  ])('%s takes %j', (name, sent, meant) => {
    const input = inputOf(name)
    const resolved = resolveAliases(input, sent)
    expect(resolved).toMatchObject({ args: meant })
    expect('args' in resolved && input.safeParse(resolved.args).success).toBe(true)
    const schema = JSON.stringify(toolParameters(input))
    for (const alias of Object.values(('written' in resolved && resolved.written) || {}))
      expect(schema).not.toContain(`"${alias}"`)
  })

  test.each([
    ['read_file', { path: 'a', file_path: 'a' }, 'path and file_path are the same argument: give path once.'],
    ['read_file', { filePath: 'a', file: 'b' }, 'filePath and file are the same argument: give path once.'],
    [
      'edit_file',
      {
        path: 'a',
        edits: [
          { old_text: 'b', new_text: '' },
          { old_string: 'b', old_text: '', new_text: '' },
        ],
      },
      'edits.1.old_string and old_text are the same argument: give old_text once.',
    ],
  ])('%s refuses %j', (name, sent, problem) => {
    expect(resolveAliases(inputOf(name), sent)).toEqual({ problem })
  })
})

describe('in any order', () => {
  const item = withAliases(z.strictObject({ x: z.string(), y: z.string().optional() }), { ex: 'x', why: 'y' })
  const input = withAliases(z.strictObject({ a: z.string(), list: z.array(item).optional() }), {
    ay: 'a',
    alpha: 'a',
    items: 'list',
  })
  type Member = readonly [string, unknown]
  const one = (...names: string[]) => fc.tuple(fc.constantFrom(...names), fc.jsonValue())
  const any = (...names: string[]) => fc.uniqueArray(one(...names), { selector: ([name]) => name })
  /** Mostly one name for an argument; sometimes several. */
  const mostly = (usual: fc.Arbitrary<Member[]>, odd: fc.Arbitrary<Member[]>) =>
    fc.oneof({ weight: 4, arbitrary: usual }, { weight: 1, arbitrary: odd })
  const listItem = mostly(
    fc.tuple(one('x', 'ex'), one('y', 'why', 'other')),
    any('x', 'ex', 'y', 'why', '__proto__'),
  ).map(Object.fromEntries)
  const list = fc.tuple(fc.constantFrom('list', 'items'), fc.oneof(fc.array(listItem), fc.jsonValue()))
  const call = fc
    .tuple(mostly(fc.tuple(one('a', 'ay', 'alpha')), any('a', 'ay', 'alpha', '__proto__')), list)
    .chain(([plain, found]) => fc.shuffledSubarray<Member>([...plain, found], { minLength: 1 }))
  const toCall = (entries: readonly Member[]) =>
    JSON.parse(JSON.stringify(Object.fromEntries(entries))) as Record<string, unknown>

  test('the true names are the same, stay the same, and lead back to what was written', () => {
    fc.assert(
      fc.property(call, (entries) => {
        const given = toCall(entries)
        const resolved = resolveAliases(input, given)
        const turned = resolveAliases(input, toCall(entries.toReversed()))
        if ('problem' in resolved || 'problem' in turned) {
          expect('problem' in resolved && 'problem' in turned).toBe(true)
          return
        }
        expect(turned.args).toEqual(resolved.args)
        expect(resolveAliases(input, resolved.args)).toEqual({ args: resolved.args })
        expect(JSON.stringify(asWritten(resolved.args, resolved.written))).toBe(JSON.stringify(given))
      }),
    )
  })
})

describe('a call through the loop', () => {
  const local = useSandboxes()
  let bench: AgentBench
  let sandbox: Awaited<ReturnType<typeof emptySandbox>>
  beforeEach(async () => {
    bench = await AgentBench.start()
    sandbox = await emptySandbox(local, 'u_ada')
    return () => bench[Symbol.asyncDispose]()
  })
  const open = async (mode: 'manual' | 'yolo'): Promise<Session> => {
    const core = await bench.core({
      tools: builtinTools(),
      rules: rulesSection.parse({ deny: [{ file: 'secret/**' }] }),
      parts: { sandbox: (userId, signal) => local.sandboxes.acquire(userId, signal) },
    })
    return newSession(core, mode)
  }
  const answers = (...calls: FakeCall[]) => bench.provider.add(toolCalls(calls), textAnswer('done'))
  const sentBack = () =>
    (bench.provider.requests.at(-1)?.body.messages ?? []).flatMap(({ tool_calls: calls }) =>
      ((calls ?? []) as { function: { arguments: string } }[]).map((call) => call.function.arguments),
    )

  test('runs, is asked about and shown under its true names, and goes back as the model wrote it', async () => {
    await sandbox.files.write('a.txt', Buffer.from('one two'))
    const args = { edits: [{ oldText: 'one', newText: '1' }], file_path: 'a.txt' }
    answers({ id: 'c1', name: 'edit_file', args })
    const session = await open('manual')
    const { done } = await session.prompt('go')
    await whenHappened(session, 'approval_asked')
    const shown = { path: 'a.txt', edits: [{ old_text: 'one', new_text: '1' }] }
    expect(pendingApprovals(session.log)).toMatchObject([{ arguments: shown }])
    await session.answer('c1', 'allow_once')
    await done
    expect(Buffer.from(await sandbox.files.read('a.txt')).toString()).toContain('1 two')
    const { entries } = session.log.reduce(foldTranscript, emptyTranscript())
    expect(entries.find(({ type }) => type === 'call')).toMatchObject({
      title: 'Edit a.txt',
      rawInput: shown,
    })
    expect(sentBack()).toEqual([JSON.stringify(args)])
  })

  test('is judged by its true names, and refused with both names where it has two', async () => {
    const both = { path: 'a.txt', file_path: 'b.txt' }
    answers(
      { id: 'denied', name: 'read_file', args: { file_path: 'secret/key' } },
      { id: 'both', name: 'read_file', args: both },
    )
    const session = await open('yolo')
    await ask(session, 'go')
    expect(outcomes(session.log)).toMatchObject({
      denied: ['failed denied'],
      both: ['failed invalid_arguments'],
    })
    expect(textsForModel(session.log)['both']).toBe(
      'path and file_path are the same argument: give path once. Nothing was run.',
    )
    expect(sentBack()).toEqual(['{"file_path":"secret/key"}', JSON.stringify(both)])
  })

  test('is the same call under every name, where the model goes in a circle', async () => {
    const names = ['path', 'dir_path', 'directory', 'dir_path']
    for (const [n, name] of names.entries())
      bench.provider.add(toolCalls([{ id: `c${n}`, name: 'list_directory', args: { [name]: '.' } }]))
    bench.provider.add(textAnswer('done'))
    const session = await open('yolo')
    await ask(session, 'go')
    expect(outcomes(session.log)['c3']).toEqual(['failed no_progress'])
    expect(session.log.findLast((event) => event.sessionUpdate === 'tool_call')).toMatchObject({
      rawInput: { path: '.' },
    })
    expect(sentBack()).toEqual(names.map((name) => `{"${name}":"."}`))
  })

  test('an edited call runs as edited and goes back as the model wrote it', async () => {
    answers({ id: 'c1', name: 'write_file', args: { filePath: 'a.txt', contents: 'one' } })
    const session = await open('manual')
    const { done } = await session.prompt('go')
    await whenHappened(session, 'approval_asked')
    await session.answer('c1', 'allow_once', { input: { path: 'a.txt', content: 'two' } })
    await done
    expect(Buffer.from(await sandbox.files.read('a.txt')).toString()).toContain('two')
    expect(textsForModel(session.log)['c1']).toContain(
      '[The user changed this call before it ran: content is',
    )
    expect(sentBack()).toEqual(['{"filePath":"a.txt","contents":"one"}'])
  })
})
