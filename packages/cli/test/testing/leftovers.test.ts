import { expect, test } from 'vitest'
import { testOwned } from '../../src/testing/leftovers.ts'

test('only what a test made is removed', () => {
  expect(testOwned('aa test-1234\nbb k3j9x0\ncc mytest-1\ndd \n\nee test-\n')).toEqual(['aa', 'ee'])
  expect(testOwned('')).toEqual([])
})
