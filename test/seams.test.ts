/** Exported interfaces stay narrow: no more than twelve members in ai-agent and sandbox. */
import { describe, expect, test } from 'vitest'

import { MOST_MEMBERS, seamProblems, seamsOf } from './seams.ts'
import { read, repositoryFiles } from './source-files.ts'

const SETTINGS = 'settings that a program or an operator gives once, each with a default'
const RECORD = 'a record of what happened, of which each reader takes some members'
const NARROWER = 'too wide still: to be split into what each of its users needs'

const EXCEPTIONS: Record<string, string> = {
  AcpServerParts: NARROWER,
  AgentConfig: SETTINGS,
  CommandExit: RECORD,
  ConnectedSandbox: NARROWER,
  ConnectingContext: NARROWER,
  EngineInfo: RECORD,
  LoopContext: NARROWER,
  RunOptions: SETTINGS,
  RunRequest: SETTINGS,
  RunnerParts: NARROWER,
  SandboxesOptions: SETTINGS,
  SessionParts: NARROWER,
}

describe('the exported interfaces of ai-agent and sandbox', () => {
  const seams = seamsOf(
    repositoryFiles()
      .filter((path) => /^packages\/(ai-agent|sandbox)\/src\/.*\.ts$/.test(path))
      .map(read),
  )

  test('are seen by this rule', () => {
    const names = seams.map(({ name }) => name)
    expect(names).toEqual(expect.arrayContaining(['Tool', 'CallContext', 'SandboxBackend']))
  })

  test('are narrow, or have a reason', () => expect(seamProblems(seams, EXCEPTIONS)).toEqual([]))
})

describe('the rule', () => {
  const members = (text: string, name = 'A'): readonly string[] | undefined =>
    seamsOf([{ path: 'a.ts', text }]).find((seam) => seam.name === name)?.members

  test('counts members of every kind, and nothing inside of their types', () => {
    expect(
      members(`export interface A<T extends object = object> {
  /** With: a comment { of: braces } */
  one: string
  readonly two?: { deep: number; deeper(): void }
  three(args: { a: string }, b?: number): void
  get four(): string
  'f-i-v-e': [x: string]
  six: (
    long: string,
    list: number,
  ) => Promise<void>
}`),
    ).toEqual(['one', 'two', 'three', 'four', "'f-i-v-e'", 'six'])
  })

  test('counts what an interface inherits, and only interfaces that are exported', () => {
    const text = 'interface Base {\n  a: 1\n  b: 2\n}\nexport interface A extends Base {\n  b: 2\n  c: 3\n}\n'
    expect(members(text)).toEqual(['b', 'c', 'a'])
    expect(members(text, 'Base')).toBeUndefined()
  })

  test('names what is too wide, and exceptions that are none any more', () => {
    const wide = {
      path: 'a.ts',
      name: 'A',
      members: Array.from({ length: MOST_MEMBERS + 1 }, (_, at) => `m${at}`),
    }
    expect(seamProblems([wide])).toEqual([expect.stringContaining('A has 13 members')])
    expect(seamProblems([wide], { A: 'why' })).toEqual([])
    expect(seamProblems([], { A: 'why' })).toEqual([expect.stringContaining('take it out')])
  })
})
