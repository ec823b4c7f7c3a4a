import { describe, expect, test } from 'vitest'
import { createSteps, failureLines, seconds, ShownError, StepError } from '../src/steps.ts'

/** A terminal that records its output, and a clock that advances by 1.5 seconds per reading. */
function terminal(live: boolean) {
  let written = ''
  let time = 0
  const steps = createSteps({ live, write: (text) => (written += text) }, () => (time += 1_500))
  return { steps, written: () => written }
}

describe('steps', () => {
  test('print the title, then the result and the duration', async () => {
    const { steps, written } = terminal(false)
    const result = await steps.run('Build', async (step) => {
      step.doing('packages/web')
      step.result('3 packages')
      return 42
    })
    expect(result).toBe(42)
    expect(written()).toBe('• Build\n  … packages/web\n✓ Build: 3 packages  1.5 s\n')
  })

  test('rewrite their line on a terminal', async () => {
    const { steps, written } = terminal(true)
    await steps.run('Build', async (step) => step.doing('it'))
    expect(written()).toBe('• Build …\r\u001B[2K• Build … it\r\u001B[2K✓ Build  1.5 s\n')
  })

  test('a failing one shows the last lines, the message and what to do, and is not shown again', async () => {
    const { steps, written } = terminal(false)
    const failure = new StepError('apt-get ended with 100.', 'Run: apt-get update', {
      details: 'E: no network\n',
    })
    const thrown = await steps.run('Programs', () => Promise.reject(failure)).catch((error: unknown) => error)
    expect(thrown).toBeInstanceOf(ShownError)
    expect(thrown).toHaveProperty('cause', failure)
    expect(written()).toBe(
      '• Programs\n✗ Programs  1.5 s\n    E: no network\n  apt-get ended with 100.\n  → Run: apt-get update\n',
    )
  })

  test('anything thrown has at least its message', () => {
    expect(failureLines(new TypeError('broken'))).toEqual(['  broken'])
    expect(failureLines('text')).toEqual(['  text'])
  })

  test.each([
    [0, '0.0 s'],
    [1_240, '1.2 s'],
    [9_949, '9.9 s'],
    [9_951, '10 s'],
    [59_400, '59 s'],
    [59_600, '1 min 00 s'],
    [185_000, '3 min 05 s'],
  ])('%i ms are %s', (ms, text) => expect(seconds(ms)).toBe(text))
})
