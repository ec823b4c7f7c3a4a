import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { lineSplitter, problemIn } from '../src/log-file.ts'

describe('what of a log a person sees', () => {
  test.each([
    ['', undefined],
    ['{"level":30,"msg":"listening"}', undefined],
    ['{"level":50,"msg":"the engine is gone"}', 'the engine is gone'],
    ['{"level":50,"msg":"cannot start","err":{"message":"no such image"}}', 'cannot start: no such image'],
    ['{"level":60,"msg":"no such image","err":{"message":"no such image"}}', 'no such image'],
    ['TypeError: x is not a function', 'TypeError: x is not a function'],
    ['{"not":"a log entry"}', '{"not":"a log entry"}'],
    ['{broken', '{broken'],
  ])('%s', (line, shown) => expect(problemIn(line)).toBe(shown))

  test('lines come out whole however the text is cut', () => {
    fc.assert(
      fc.property(fc.array(fc.constantFrom('a', 'b', '\n', 'é')), (pieces) => {
        const lines: string[] = []
        const splitter = lineSplitter((line) => lines.push(line))
        for (const piece of pieces) splitter.push(piece)
        splitter.end()
        const text = pieces.join('')
        expect(lines).toEqual(
          text.endsWith('\n') || text === '' ? text.split('\n').slice(0, -1) : text.split('\n'),
        )
      }),
    )
  })
})
