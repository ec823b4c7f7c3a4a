/** Exported interfaces stay narrow in every package: no more than twelve members. */
import { describe, expect, test } from 'vitest'

import { exceptionProblems } from './exceptions.ts'
import { MOST_MEMBERS, seamProblems, seamsOf } from './seams.ts'
import { read, repositoryFiles } from './source-files.ts'

const SETTINGS = 'settings that a program or an operator gives once, each with a default'
const RECORD = 'a record of what happened, of which each reader takes some members'
const NARROWER = 'too wide still: to be split into what each of its users needs'

const TABLES = 'each table of a database, with the type of its rows'
const ROOT = 'the parts of a program, which it builds once'
const ROW = 'a row of a table, or what a view shows of it: a member for each column'

/** By package, then by name. */
const EXCEPTIONS: Record<string, Record<string, string>> = {
  'packages/ai-agent': {
    AgentConfig: SETTINGS,
    BackendConfig: SETTINGS,
    LoopContext: NARROWER,
    RunOptions: SETTINGS,
    RunnerParts: ROOT,
    SessionParts: ROOT,
  },
  'packages/cli': { CliConfig: SETTINGS },
  'packages/sandbox': {
    CommandExit: RECORD,
    ConnectedSandbox: NARROWER,
    ConnectingContext: NARROWER,
    EngineInfo: RECORD,
    RunRequest: SETTINGS,
    SandboxesOptions: SETTINGS,
  },
  'packages/service': {
    Metrics: ROOT,
    Parts: ROOT,
    PromptRequest: RECORD,
    ServiceConfig: SETTINGS,
  },
  'packages/shared': { CallEntry: ROW, Transcript: RECORD },
  'packages/storage': {
    AccountsSchema: TABLES,
    AccountsStore: ROOT,
    AuditRow: ROW,
    Effects: RECORD,
    SessionStore: ROOT,
    SessionsSchema: TABLES,
  },
}

const seams = seamsOf(
  repositoryFiles()
    .filter((path) => /^(packages|mcp)\/[^/]+\/src\/.*\.tsx?$/.test(path))
    .map(read),
)
const packages = Map.groupBy(seams, ({ path }) => path.split('/', 2).join('/'))

describe.each([...packages])('the exported interfaces of %s', (name, found) => {
  test('are narrow, or have a reason', () => expect(seamProblems(found, EXCEPTIONS[name])).toEqual([]))
})

test('interfaces are seen by this rule', () => {
  const names = seams.map(({ name }) => name)
  expect(names).toEqual(expect.arrayContaining(['Tool', 'CallContext', 'SandboxBackend', 'SessionStore']))
})

test('no package has many exceptions, and each is of a package', () => {
  const names = Object.entries(EXCEPTIONS).flatMap(([name, list]) => Object.keys(list).map(() => name))
  expect(exceptionProblems(names)).toEqual([])
  expect(Object.keys(EXCEPTIONS).filter((name) => !packages.has(name))).toEqual([])
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
