import { expect, test } from 'vitest'

import { orAborted } from '../../src/async/or-aborted.ts'

const never = new Promise<string>(() => {})

test('it is as the work does while the signal does not abort', async () => {
  const { signal } = new AbortController()
  expect(await orAborted(Promise.resolve('done'), signal)).toBe('done')
  await expect(orAborted(Promise.reject(new Error('failed')), signal)).rejects.toThrow('failed')
})

test('it rejects with the reason when the signal aborts first, before or after the call', async () => {
  const controller = new AbortController()
  const waiting = orAborted(never, controller.signal)
  const named = orAborted(never, controller.signal, () => 'own reason')
  controller.abort('stopped')
  await expect(waiting).rejects.toBe('stopped')
  await expect(named).rejects.toBe('own reason')
  await expect(orAborted(never, controller.signal)).rejects.toBe('stopped')
})

test('work that fails after the abort, or is given with an aborted signal, is no unhandled rejection', async () => {
  const controller = new AbortController()
  const work = Promise.withResolvers<string>()
  const waiting = orAborted(work.promise, controller.signal)
  controller.abort('stopped')
  await expect(waiting).rejects.toBe('stopped')
  work.reject(new Error('too late'))
  await expect(orAborted(Promise.reject(new Error('at once')), controller.signal)).rejects.toBe('stopped')
})
