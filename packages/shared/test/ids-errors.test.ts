import { describe, expect, test } from 'vitest'
import { SandlotError, toErrorBody } from '../src/base/errors.ts'
import { clientFrame } from '../src/chat/frames.ts'
import { newId, randomText, sessionId } from '../src/base/ids.ts'

describe('ids', () => {
  test('are unique, of the promised length, and valid where they are used', () => {
    const ids = new Set(Array.from({ length: 2_000 }, () => newId('s')))
    expect(ids.size).toBe(2_000)
    for (const id of ids) expect(sessionId.safeParse(id).success).toBe(true)
    expect(randomText(33)).toMatch(/^[0-9a-z]{33}$/)
  })

  test.each(['', 'a b', '../x', 'ä', 'x'.repeat(65)])('a session id is refused: %j', (id) => {
    expect(sessionId.safeParse(id).success).toBe(false)
  })
})

describe('errors', () => {
  test('only our own errors show their message', () => {
    expect(toErrorBody(new SandlotError('not_found', 'No such session'), 'r1')).toEqual({
      code: 'not_found',
      message: 'No such session',
      requestId: 'r1',
    })
    expect(toErrorBody(new Error('password=hunter2')).message).not.toContain('hunter2')
  })
})

describe('frames', () => {
  test('steering is the default, and what does not fit is refused', () => {
    expect(clientFrame.parse({ type: 'ai_chat', requestId: 'r', text: 'hi' })).toMatchObject({
      whenBusy: 'steer',
    })
    for (const bad of [{ type: 'ai_chat', requestId: 'r', text: '' }, { type: 'nonsense' }, null, 3]) {
      expect(clientFrame.safeParse(bad).success).toBe(false)
    }
  })
})
