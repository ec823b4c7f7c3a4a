import { expect, test } from 'vitest'
import {
  partsWithPaths,
  pathInWords,
  readAttachedFiles,
  withAttachedFiles,
} from '../../src/chat/attached-files.ts'

test('attached files stand at the end of a message, and are read from there again', () => {
  const paths = ['uploads/report 1.pdf', 'uploads/a.csv']
  const text = withAttachedFiles('Sum them up.', paths)
  expect(text).toBe(
    'Sum them up.\n\nAttached file: /workspace/uploads/report 1.pdf\nAttached file: /workspace/uploads/a.csv',
  )
  expect(readAttachedFiles(text)).toEqual({ words: 'Sum them up.', paths })
  expect(readAttachedFiles(withAttachedFiles('', paths))).toEqual({ words: '', paths })
  for (const plain of ['', 'Attached file: x', 'Attached file: /workspace/a\nand more'])
    expect(readAttachedFiles(plain)).toEqual({ words: plain, paths: [] })
})

test('paths of the workspace are found in words, and nothing else is', () => {
  const pathsIn = (words: string) => partsWithPaths(words).flatMap(({ path }) => path ?? [])
  for (const path of ['src/main.ts', 'my plan.md', "it's.txt", 'a(1).txt', '.profile'])
    expect(pathsIn(`Read ${pathInWords(path)} now.`)).toEqual([path])
  expect(pathsIn('See /workspace/a.md, (/workspace/b.md) and /workspace/c.md.')).toEqual([
    'a.md',
    'b.md',
    'c.md',
  ])
  for (const words of [
    '/workspace',
    '/workspace/',
    'x/workspace/a',
    '/workspace/../etc/passwd',
    '/etc/x',
    '"/workspace/',
  ])
    expect(pathsIn(words)).toEqual([])
  const words = 'a "/workspace/b c" d /workspace/e.'
  expect(
    partsWithPaths(words)
      .map(({ text }) => text)
      .join(''),
  ).toBe(words)
})
