import { expect, test } from 'vitest'

import { testTitles } from './test-titles.ts'

test('titles of tests and groups, however they are declared', () => {
  const text = `
    describe.skipIf(reason !== undefined)(\`a group\${reason ? \` (\${reason})\` : ''}\`, () => {
      test('one', () => {})
      test.concurrent.each(sample('x', [[1, ')'], ["it's", '(']], 2))(
        'two of %s',
        () => {},
      )
      apart("three", async () => expect(/it('no')/.test('it')).toBe(true))
      test.runIf(full)('four isn\\'t skipped', () => {})
    })`
  expect(testTitles(text)).toEqual(
    expect.arrayContaining(['one', 'two of %s', 'three', "four isn't skipped"]),
  )
})

test('not of what is in a comment or a string, is never run, or is another thing', () => {
  const text = `
    // test('in a line', () => {})
    /* test('in a block', () => {}) */
    test.skip('skipped', () => {})
    test.todo('to do')
    describe.skip('a skipped group', () => {
      test('in it', () => {})
    })
    describe.each([1, 2]).skip
    describe('a group with nothing left', () => {
      test.skip('gone', () => {})
      test.each([1, 2]).todo('of %s')
      describe.skip('gone too', () => test('in it', () => {}))
    })
    const text = "say"; latest('no'); pattern.test('no'); test(title, body)
    test('there', () => {})`
  expect(testTitles(text)).toEqual(['there'])
})

test('a group counts as long as one of its tests runs, or its tests come from elsewhere', () => {
  const text = `
    describe('a group', () => {
      test.skip('gone', () => {})
      describe('within', () => {
        test(\`there\`, () => {})
      })
    })
    describe('a contract', () => contract(() => make()))`
  expect(testTitles(text)).toEqual(['a group', 'within', 'there', 'a contract'])
})
