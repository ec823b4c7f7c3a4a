import { describe, expect, test } from 'vitest'
import { dustProblems, patternProblems, roomProblems, spreadProblems, wordProblems } from './house-rules.ts'
import { read, repositoryFiles, type SourceFile } from './source-files.ts'

const files = repositoryFiles()
  .filter((path) => /\.(tsx?|mjs)$/.test(path))
  .map(read)

describe('the repository', () => {
  test.each(
    [roomProblems, dustProblems, spreadProblems, patternProblems, wordProblems].map((rule) => ({
      name: rule.name,
      rule,
    })),
  )('has no $name', ({ rule }) => expect(rule(files)).toEqual([]))
})

const file = (path: string, text = ''): SourceFile => ({ path, text })
const several = (count: number, folder: string): SourceFile[] =>
  Array.from({ length: count }, (_, place) => file(`${folder}/f${place}.ts`))

describe('the rules find', () => {
  test('rooms that are too full', () => {
    expect(roomProblems(several(8, 'packages/service/src'))).toEqual([])
    expect(roomProblems(several(9, 'packages/service/src'))).toHaveLength(1)
    expect(roomProblems(several(30, 'packages/service/src/http'))).toEqual([])
    expect(roomProblems(several(31, 'packages/service/src/http'))).toHaveLength(1)
    expect(roomProblems(several(30, 'packages/shared/src'))).toEqual([])
  })

  test('small files with one importer, unless a test names them or another package does', () => {
    const small = file('packages/web/src/a.ts', 'export const a = 1\n')
    const one = file('packages/web/src/b.ts', "import { a } from './a.ts'\n")
    const other = file('packages/web/src/c.ts', "import { a } from './a.ts'\n")
    const own = file('packages/web/test/a.test.ts', "import { a } from '../src/a.ts'\n")
    expect(dustProblems([small, one])).toHaveLength(1)
    expect(dustProblems([small, one, other])).toEqual([])
    expect(dustProblems([small, one, own])).toEqual([])
    expect(dustProblems([file(small.path, 'export const a = 1\n'.repeat(80)), one])).toEqual([])
  })

  test.each(['...(a === undefined ? {} : { a })', '...(b.c === undefined ? {} : { d: b.c })'])(
    'a spread: %s',
    (text) => {
      expect(spreadProblems([file('packages/web/src/a.ts', `f({ ${text} })`)])).toHaveLength(1)
      expect(spreadProblems([file('packages/web/src/a.ts', `// f({ ${text} })`)])).toEqual([])
    },
  )

  test('patterns and validators made of what others wrote', () => {
    const problems = (text: string, path = 'packages/ai-agent/src/mcp/a.ts'): string[] =>
      patternProblems([file(path, text)])
    for (const text of [
      'new RegExp(schema.pattern)',
      'RegExp(`^${name}$`, "u")',
      "RegExp('a' + given)",
      "import { Validator } from '@cfworker/json-schema'",
      "import { AjvJsonSchemaValidator } from '@modelcontextprotocol/client/validators/ajv'",
      'z.fromJSONSchema(schema)',
    ]) {
      expect(problems(text), text).toHaveLength(1)
      expect(problems(text, 'packages/ai-agent/src/mcp/a-worker.ts'), text).toEqual([])
    }
    for (const text of [
      'new RegExp(`^${FILE}$`)',
      "RegExp('abc', 'u')",
      'new RegExp(String.raw`\\s${PATH}x`)',
      '// RegExp(pattern)',
    ])
      expect(problems(text), text).toEqual([])
  })

  test('a person where a thing acts, in comments, the log and names, and a comment that is too wide', () => {
    const problems = (text: string): string[] => wordProblems([file('packages/web/src/a.ts', `${text}\n`)])
    expect(problems('// The store hears of it.')).toHaveLength(1)
    expect(problems("const a = 'nobody'")).toEqual([])
    expect(problems("log.warn({ a: b(c) }, 'the store hears of it')")).toHaveLength(1)
    expect(problems("log.warn({ a: b(c) }, 'the store was read'), f('nobody')")).toEqual([])
    expect(problems('export function asksAnybody() {}')).toHaveLength(1)
    expect(problems('export const LET_GO_MS = 1')).toHaveLength(1)
    expect(problems('export const threshold = 1, letGoal = 2')).toEqual([])
    expect(problems(`// ${'word '.repeat(25)}`)).toHaveLength(1)
    expect(problems(`// ${'word '.repeat(15)}`)).toEqual([])
  })
})
