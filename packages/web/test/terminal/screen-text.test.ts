import { expect, test } from 'vitest'
import { codeBlock, screenText } from '../../src/terminal/screen-text.ts'

test('the lines on the screen are its text; what was wrapped is one line again', () => {
  const lines = ['before', '', 'a long li', 'ne', '$ ls', '', '']
  const buffer = {
    viewportY: 1,
    getLine: (y: number) => {
      const text = lines[y]
      return text === undefined ? undefined : { isWrapped: y === 3, translateToString: () => text }
    },
  }
  expect(screenText(buffer, 6)).toBe('a long line\n$ ls')
  expect(screenText(buffer, 1)).toBe('')
})

test('a code block ends where its text does, whatever ticks are in it', () => {
  expect(codeBlock('ls')).toBe('```\nls\n```')
  expect(codeBlock('```\ncode\n```')).toBe('````\n```\ncode\n```\n````')
})
