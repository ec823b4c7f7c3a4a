import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { failureOfStatus } from '../src/http-failure.ts'
import { makeLog } from '../src/log.ts'
import { Lookups, keyOf } from '../src/lookups.ts'

const RULES = { service: 'Atlas', perMinute: 100, freshMs: 1_000, timeoutMs: 60_000 }
const never = new AbortController().signal
const ann = (key: string, signal = never) => ({ userId: 'ann', key, signal })

describe('lookups', () => {
  test('an answer is reused while it is fresh, and asked again after that', async () => {
    let now = 5
    let asked = 0
    const lookups = new Lookups<{ n: number }>({ ...RULES, clock: () => now })
    const ask = async (): Promise<{ n: number }> => ({ n: ++asked })
    expect(await lookups.find(ann('a'), ask)).toEqual({ found: { n: 1 }, cached: false })
    now += 999
    expect(await lookups.find(ann('a'), ask)).toEqual({ found: { n: 1 }, cached: true })
    expect(await lookups.find(ann('b'), ask)).toEqual({ found: { n: 2 }, cached: false })
    now += 2
    expect(await lookups.find(ann('a'), ask)).toEqual({ found: { n: 3 }, cached: false })
  })

  test('a failure is not kept', async () => {
    const lookups = new Lookups<object>(RULES)
    await expect(lookups.find(ann('a'), () => Promise.reject(new Error('no')))).rejects.toThrow('no')
    expect(await lookups.find(ann('a'), () => Promise.resolve({}))).toEqual({ found: {}, cached: false })
  })

  test('who asks the same at the same time shares one request; it ends only with the last of them', async () => {
    const lookups = new Lookups<object>(RULES)
    const first = new AbortController()
    const second = new AbortController()
    let asked = 0
    let ended: AbortSignal | undefined
    const ask = (signal: AbortSignal): Promise<object> => {
      asked++
      ended = signal
      return new Promise<never>(() => {})
    }
    const a = lookups.find(ann('a', first.signal), ask)
    const b = lookups.find(ann('a', second.signal), ask)
    await Promise.resolve()
    first.abort()
    await expect(a).rejects.toMatchObject({ code: 'cancelled' })
    expect({ asked, aborted: ended?.aborted }).toEqual({ asked: 1, aborted: false })
    second.abort()
    await expect(b).rejects.toMatchObject({ code: 'cancelled' })
    expect(ended?.aborted).toBe(true)
    // A later caller starts a new request.
    expect(await lookups.find(ann('a'), () => Promise.resolve({}))).toEqual({ found: {}, cached: false })
  })

  test('at the time limit it ends, even when what it asks does not', async () => {
    const lookups = new Lookups<object>({ ...RULES, timeoutMs: 5 })
    await expect(lookups.find(ann('a'), () => new Promise<never>(() => {}))).rejects.toMatchObject({
      code: 'timeout',
      message: expect.stringContaining('Atlas did not answer within 0.005 seconds') as string,
    })
  })

  test('the minute of one user is not that of another, and what is known costs nothing', async () => {
    const lookups = new Lookups<object>({ ...RULES, perMinute: 2 })
    const ask = (): Promise<object> => Promise.resolve({})
    await lookups.find(ann('a'), ask)
    await lookups.find(ann('b'), ask)
    await lookups.find(ann('a'), ask)
    await expect(lookups.find(ann('c'), ask)).rejects.toMatchObject({
      code: 'rate_limited',
      retryAfterSeconds: expect.any(Number) as number,
    })
    expect(await lookups.find({ ...ann('c'), userId: 'bob' }, ask)).toMatchObject({ cached: false })
  })

  test('a key is the question, whatever the order of its fields', () => {
    expect(keyOf({ a: 1, b: [2] })).toBe(keyOf({ b: [2], a: 1 }))
    fc.assert(
      fc.property(
        fc.dictionary(fc.string(), fc.string()),
        fc.dictionary(fc.string(), fc.string()),
        (a, b) => {
          const same = keyOf(a) === keyOf(b)
          const sorted = (of: object): string => JSON.stringify(Object.entries(of).toSorted(byName))
          expect(same).toBe(sorted(a) === sorted(b))
        },
      ),
    )
    expect(keyOf({}, 'ann')).not.toBe(keyOf({}, 'bob'))
  })
})

const byName = ([a]: [string, unknown], [b]: [string, unknown]): number => (a < b ? -1 : 1)

describe('a status', () => {
  const answer = { service: 'Atlas', credential: 'Set ATLAS_KEY.', subject: 'map' }
  const NOW = Date.parse('2027-01-01T00:00:00Z')
  test.each([
    [400, 'refused'],
    [401, 'needs_auth'],
    [403, 'forbidden'],
    [404, 'not_found'],
    [422, 'refused'],
    [429, 'rate_limited'],
    [500, 'unavailable'],
    [503, 'unavailable'],
  ] as const)('%i is %s', (status, code) =>
    expect(failureOfStatus({ ...answer, status }, NOW).code).toBe(code),
  )

  test('says what to do, and quotes little', () => {
    expect(failureOfStatus({ ...answer, status: 401 }, NOW).message).toContain('Set ATLAS_KEY.')
    const long = failureOfStatus({ ...answer, status: 422, said: 'x'.repeat(5_000) }, NOW).message
    expect(long.length).toBeLessThan(400)
    expect(failureOfStatus({ ...answer, status: 429, retryAfter: '7' }, NOW)).toMatchObject({
      retryAfterSeconds: 7,
      message: expect.stringContaining('in 7 seconds') as string,
    })
  })

  test('a wait is seconds or a date, and never silly', () => {
    const waitOf = (retryAfter: string | null | undefined) =>
      failureOfStatus({ ...answer, status: 503, retryAfter }, NOW).retryAfterSeconds
    expect(waitOf('30')).toBe(30)
    expect(waitOf('Fri, 01 Jan 2027 00:01:00 GMT')).toBe(60)
    expect(waitOf('Fri, 01 Jan 2020 00:01:00 GMT')).toBe(0)
    expect(waitOf('999999999')).toBe(86_400)
    for (const nothing of [undefined, null, '', 'soon', '-5x']) expect(waitOf(nothing)).toBeUndefined()
  })
})

test('the log hides credentials by value and by shape', () => {
  const lines: string[] = []
  const log = makeLog('test', ['the-very-secret-value'], (line) => lines.push(line))
  log.warn(
    { error: 'refused the-very-secret-value', deep: { key: 'duffel_test_abcdefghijklmnop' } },
    'sk-abcdefghijklmnop',
  )
  expect(lines.join('')).not.toMatch(/the-very|duffel_test_a|sk-abc/)
  expect(JSON.parse(lines[0] ?? '')).toMatchObject({ level: 'warn', part: 'test' })
})
