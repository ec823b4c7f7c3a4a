import { expect, test } from 'vitest'
import { metaOf, sessionEvent } from '../src/chat/events.ts'

const read = (event: unknown) =>
  sessionEvent.safeParse({
    sessionUpdate: 'session_info_update',
    _meta: { sandlot: { v: 1, seq: 7, at: 1, event } },
  })

test('an event of a kind that a later version has added is read as one that says nothing', () => {
  const { data } = read({ type: 'of_a_later_version', what: 'ever' })
  expect(data && metaOf(data)).toEqual({ v: 1, seq: 7, at: 1 })
  expect(read({ type: 'comment' }).success).toBe(false)
  expect(read('none').success).toBe(false)
  expect(read(undefined).data).toEqual(data)
  expect(
    read({ type: 'stop_asked' }).data && metaOf(read({ type: 'stop_asked' }).data as never).event,
  ).toEqual({ type: 'stop_asked' })
})

test('the digests of a request that the previous version stored are kept whole: it refuses a part of them', () => {
  const request = { upTo: 3, frame: 'f', body: 'b', from: 2, digests: ['d'] }
  const event = {
    sessionUpdate: 'session_info_update',
    _meta: { sandlot: { v: 1, seq: 7, at: 1, request } },
  }
  expect(sessionEvent.parse(event)).toEqual(event)
})
