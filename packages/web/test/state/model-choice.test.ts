/** Which model the page shows, and what it sends when another is chosen. */
import { me as meShape } from '@sandlot/shared/account/api'
import { emptyTranscript, foldTranscript } from '@sandlot/shared/transcript/transcript'
import { makeSandlotEvent } from '@sandlot/shared/chat/events'
import { expect, test } from 'vitest'
import { changeOf, hasChoice, modelOf, withModel } from '../../src/state/model-choice.ts'
import { frameOf } from '../../src/state/outbox.ts'

const about = (name: string, thoughtLevels: string[] = []) => ({ name, thoughtLevels, images: true })
const me = meShape.parse({
  id: 'u',
  name: 'Ada',
  email: 'ada@example.org',
  role: 'member',
  model: { name: 'main', demo: false },
  models: [about('main'), about('thinker', ['low', 'high']), about('other', ['high'])],
  defaultMode: 'auto-edit',
})

test('there is a choice with a second model, or with one that can be told how hard to think', () => {
  expect(hasChoice(me)).toBe(true)
  expect(hasChoice({ ...me, models: [about('main')] })).toBe(false)
  expect(hasChoice({ ...me, models: [about('main', ['low'])] })).toBe(true)
  expect(hasChoice({ ...me, models: undefined })).toBe(false)
})

test('what the log says was chosen is shown, and the deployment’s own when it is not there any more', () => {
  const chosen = (model: string, thoughtLevel?: string) => {
    const event = makeSandlotEvent({ type: 'model_chosen', model, thoughtLevel }, {}, 1)
    event._meta.sandlot.seq = 1
    return modelOf(foldTranscript(emptyTranscript(), event), me)
  }
  expect(modelOf(emptyTranscript(), me)).toEqual({ model: 'main', thoughtLevel: null })
  expect(chosen('thinker', 'high')).toEqual({ model: 'thinker', thoughtLevel: 'high' })
  expect(chosen('gone', 'high')).toEqual({ model: 'main', thoughtLevel: null })
})

test('what waits to be told is shown, and only what is different is told', () => {
  const high = { model: 'thinker', thoughtLevel: 'high' }
  const none = emptyTranscript()
  expect(modelOf(none, me, { model: 'thinker' })).toEqual({ model: 'thinker', thoughtLevel: null })
  expect(modelOf({ model: { name: 'thinker', thoughtLevel: 'high' } }, me, { thoughtLevel: null })).toEqual({
    model: 'thinker',
    thoughtLevel: null,
  })
  expect(changeOf(high, { ...high, thoughtLevel: 'low' })).toEqual({ thoughtLevel: 'low' })
  expect(changeOf(high, { ...high, model: 'other' })).toEqual({ model: 'other' })
  expect(changeOf(high, withModel(me, high, 'main'))).toEqual({ model: 'main', thoughtLevel: null })
  expect(changeOf(high, high)).toEqual({})
})

test('another model keeps the level where it has it', () => {
  const high = { model: 'thinker', thoughtLevel: 'high' }
  expect(withModel(me, high, 'other')).toEqual({ model: 'other', thoughtLevel: 'high' })
  expect(withModel(me, { ...high, thoughtLevel: 'low' }, 'other')).toEqual({
    model: 'other',
    thoughtLevel: null,
  })
  expect(withModel(me, high, 'main')).toEqual({ model: 'main', thoughtLevel: null })
})

test('the first message of a new chat says it, also when it is sent again', () => {
  const message = {
    requestId: 'r_1',
    sessionId: null,
    text: 'go',
    sentAt: 1,
    model: 'thinker',
    thoughtLevel: 'low',
  }
  expect(frameOf(message)).toMatchObject({ type: 'ai_chat', model: 'thinker', thoughtLevel: 'low' })
})
