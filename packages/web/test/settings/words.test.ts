/** Words of the settings that depend on more than one part of the state. */
import { createElement } from 'react'
import { expect, test } from 'vitest'
import { Health } from '../../src/settings/overview/health.tsx'
import { wordsOf } from '../support/rendered.ts'

test('health calls nothing well while an alert is open', () => {
  const check = (ok: boolean) => ({ part: 'disk', ok, message: 'the disk has room' })
  const health = (ok: boolean, alerts: number) =>
    wordsOf(createElement(Health, { health: { ready: true, reasons: [check(ok)] }, alerts }))
  expect(health(true, 0)).toContain('Everything works.')
  expect(health(true, 1)).toContain('All checks pass now. 1 alert is still open')
  expect(health(false, 1)).toContain('Chat works. 1 check fails.')
  for (const words of [health(true, 1), health(false, 0)]) expect(words).not.toContain('Everything works')
})
