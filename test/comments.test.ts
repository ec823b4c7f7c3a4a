import { describe, expect, test } from 'vitest'
import { commentsOf, firstWordProblems } from './comments.ts'
import { read, repositoryFiles, type SourceFile } from './source-files.ts'

test('comments begin with a noun or a verb', () => {
  const files = repositoryFiles()
    .filter((path) => /\.(?:tsx?|mjs|js|css|c|h)$/.test(path))
    .map(read)
  expect(files.flatMap(firstWordProblems)).toEqual([])
})

const file = (text: string): SourceFile => ({ path: 'packages/a/src/a.ts', text })

test('comments are blocks, and // lines that follow each other', () => {
  const text =
    '/**\n * One\n * two.\n */\nf() // Three.\n\n  // Four\n  // five.\n/* Six. */\n/** Seven. */\n'
  expect(commentsOf(file(text))).toEqual([
    { line: 2, lines: ['One', 'two.'] },
    { line: 5, lines: ['Three.'] },
    { line: 7, lines: ['Four', 'five.'] },
    { line: 9, lines: ['Six.'] },
    { line: 10, lines: ['Seven.'] },
  ])
})

describe('the rule about first words', () => {
  const problems = (text: string): string[] => firstWordProblems(file(text))

  test.each(['/** What it is. */', 'f()\n// Whose it is.', 'f() // As it was.', '/*\n * Where it is.\n */'])(
    'refuses %j',
    (text) =>
      expect(problems(text)).toEqual([
        expect.stringMatching(/^packages\/a\/src\/a\.ts:[12]: .*noun or a verb$/),
      ]),
  )

  test.each([
    '// Words. What comes later counts for nothing.',
    '// Whatever',
    "'/* What */'",
    '// A\n// What',
  ])('accepts %j', (text) => expect(problems(text)).toEqual([]))
})
