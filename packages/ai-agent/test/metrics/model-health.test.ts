import { expect, test } from 'vitest'
import { ModelHealth } from '../../src/metrics/model-health.ts'

const NAMES = ['small', 'large']
const said = (health: ModelHealth, names = NAMES): Record<string, [boolean, string]> =>
  Object.fromEntries(health.reasons(names).map(({ part, ok, message }) => [part, [ok, message]]))

test('says nothing of a model that was not asked, or is not there any more', () => {
  const health = new ModelHealth()
  expect(said(health)).toEqual({})
  health.failed('gone', 'auth')
  expect(said(health)).toEqual({})
})

test('a key that is refused is said at once, and well again with the next answer', () => {
  const health = new ModelHealth()
  health.served('large')
  health.failed('small', 'auth')
  expect(said(health)).toEqual({
    'model-key': [false, 'A key is refused: that of small.'],
    provider: [true, 'The model’s provider answers.'],
  })
  health.served('small')
  expect(said(health)['model-key']).toEqual([true, 'The model’s key is accepted.'])
})

test('a provider fails with the fifth failure in a row; before it nothing is known', () => {
  const health = new ModelHealth()
  for (let n = 1; n <= 4; n++) health.failed('small', 'overloaded')
  expect(said(health)).toEqual({})
  health.failed('small', 'server_error')
  expect(said(health)).toEqual({
    provider: [false, 'The last 5 requests to small failed (server error).'],
  })
  health.served('small')
  for (let n = 1; n <= 4; n++) health.failed('small', 'timeout')
  expect(said(health)['provider']).toBeUndefined()
})

test('a quota that is used up counts at once; what is about one request alone does not count', () => {
  const health = new ModelHealth()
  for (let n = 0; n < 10; n++) health.failed('small', 'context_overflow')
  for (let n = 0; n < 10; n++) health.failed('small', 'rate_limit')
  expect(said(health)).toEqual({})
  health.failed('small', 'quota')
  expect(said(health)['provider']).toEqual([false, 'The quota of small is used up.'])
})
