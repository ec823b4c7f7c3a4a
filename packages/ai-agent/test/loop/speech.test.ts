import { sandlotEventOf } from '@sandlot/shared/chat/events'
import { expect, test } from 'vitest'
import { StreamedAnswer } from '../../src/loop/streamed-answer.ts'

test('a call that is being written is shown at once and then ten times a second, each by itself', () => {
  let now = 1_000
  const speech = new StreamedAnswer({ promptId: 'p', log: () => [], now: () => now }, 1)
  const shown: string[] = []
  for (; now <= 1_250; now += 25) {
    for (const place of [0, 1]) {
      const event = speech.draft({ type: 'call', place, name: 'write_file', args: `{"path": "f${now}` })
      if (event !== undefined && sandlotEventOf(event)?.type === 'call_drafted')
        shown.push(`${place} at ${now}`)
    }
  }
  expect(shown).toEqual([1_000, 1_100, 1_200].flatMap((at) => [`0 at ${at}`, `1 at ${at}`]))
})
