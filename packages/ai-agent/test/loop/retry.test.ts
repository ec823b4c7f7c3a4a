import { describe, expect, test } from 'vitest'
import { RETRY_RULES, retryVerdict } from '../../src/loop/retry.ts'
import { ModelError } from '../../src/model/model.ts'

const failed = (retryable: boolean, waitMs?: number): ModelError =>
  new ModelError('overloaded', 'It is busy.', { retryable, waitMs })

describe('when a model request is made again', () => {
  test('full jitter below a growing cap, up to four attempts', () => {
    const waits = [1, 2, 3].map((attempt) =>
      retryVerdict(failed(true), attempt, RETRY_RULES, () => 0.999_999),
    )
    expect(waits).toEqual([500, 1_000, 2_000].map((waitMs) => ({ again: true, waitMs })))
    expect(retryVerdict(failed(true), 1, RETRY_RULES, () => 0)).toEqual({ again: true, waitMs: 0 })
    expect(retryVerdict(failed(true), 4, RETRY_RULES)).toEqual({ again: false, message: 'It is busy.' })
    expect(retryVerdict(failed(false), 1, RETRY_RULES)).toMatchObject({ again: false })
  })

  test('what the provider asks for is waited, up to a minute; longer is told', () => {
    expect(retryVerdict(failed(true, 60_000), 1, RETRY_RULES)).toEqual({ again: true, waitMs: 60_000 })
    expect(retryVerdict(failed(true, 61_000), 1, RETRY_RULES)).toEqual({
      again: false,
      message: 'It is busy. Try again in 2 minutes.',
    })
    expect(retryVerdict(failed(true, 5 * 3_600_000), 1, RETRY_RULES)).toMatchObject({
      message: 'It is busy. Try again in 5 hours.',
    })
  })
})
