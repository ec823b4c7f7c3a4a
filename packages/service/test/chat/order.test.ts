import { setImmediate as turn } from 'node:timers/promises'
import { SandlotError } from '@sandlot/shared/base/errors'
import { newId } from '@sandlot/shared/base/ids'
import { uploadedImage } from '@sandlot/shared/chat/images'
import fc from 'fast-check'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { InOrder } from '../../src/chat/in-order.ts'
import { DEFAULT_RATES } from '../../src/auth/limits.ts'
import { Tab, setUp, startHarness, waitFor } from '../support/harness.ts'
import type { Harness } from '../support/harness.ts'
import { PNG } from '../support/png.ts'

describe('work in order', () => {
  test('begins when what came before under its key has ended, however that took and ended', async () => {
    const jobs = fc.array(
      fc.record({ key: fc.constantFrom('a', 'b'), turns: fc.nat(4), fails: fc.boolean() }),
      { maxLength: 12 },
    )
    await fc.assert(
      fc.asyncProperty(jobs, async (given) => {
        const order = new InOrder(100)
        const seen: Record<string, string[]> = { a: [], b: [] }
        const settled = await Promise.allSettled(
          given.map(({ key, turns, fails }, index) =>
            order.run(key, async () => {
              seen[key]?.push(`+${index}`)
              for (let i = 0; i < turns; i++) await turn()
              seen[key]?.push(`-${index}`)
              if (fails) throw new SandlotError('busy', `${index}`)
              return index
            }),
          ),
        )
        for (const [key, log] of Object.entries(seen))
          expect(log).toEqual(
            given.flatMap((job, index) => (job.key === key ? [`+${index}`, `-${index}`] : [])),
          )
        settled.forEach((one, index) => {
          if (one.status === 'fulfilled') expect(one.value).toBe(index)
          else expect((one.reason as Error).message).toBe(`${index}`)
        })
        expect(settled.map((one) => one.status === 'rejected')).toEqual(given.map(({ fails }) => fails))
      }),
      { numRuns: 50 },
    )
  })

  test('is refused when too much waits under its key, and continues when there is room', async () => {
    const order = new InOrder(2)
    const go = Promise.withResolvers<string>()
    const first = [order.run('a', () => go.promise), order.run('a', async () => 'second')]
    await expect(order.run('a', async () => 'third')).rejects.toMatchObject({ code: 'rate_limited' })
    expect(await order.run('b', async () => 'another’s')).toBe('another’s')
    go.resolve('first')
    expect(await Promise.all(first)).toEqual(['first', 'second'])
    expect(await order.run('a', async () => 'third')).toBe('third')
  })
})

describe('frames of a tab about one session', () => {
  let harness: Harness
  let tab: Tab
  let image: string

  beforeAll(async () => {
    harness = await startHarness(
      {},
      { rates: { ...DEFAULT_RATES, prompts: { points: 10_000, seconds: 60 } } },
    )
    const ann = await setUp(harness)
    const { url } = harness.service
    const sent = await fetch(`${url}/api/images`, {
      method: 'POST',
      headers: { cookie: ann.cookie, origin: url, 'content-type': 'image/png' },
      body: new Uint8Array(PNG),
    })
    image = uploadedImage.parse(await sent.json()).id
    tab = await Tab.of(ann, url)
  })

  afterAll(async () => {
    await tab.close()
    await harness.close()
  })

  type Said = 'mode' | 'model and level' | 'words' | 'an image' | 'a lost image' | 'stop'

  /** The frame, and the agent's request for it. */
  const meaning = (said: Said, sessionId: string, index: number): { frame: object; heard: string[] } => {
    const chat = { type: 'ai_chat', sessionId, requestId: newId('r'), text: `${index}` }
    const prompt = `prompt ${sessionId} ${index}`
    switch (said) {
      case 'mode':
        return {
          frame: { type: 'ai_chat_mode', sessionId, modeId: index % 2 === 0 ? 'yolo' : 'manual' },
          heard: [`mode ${sessionId} ${index % 2 === 0 ? 'yolo' : 'manual'}`],
        }
      case 'model and level':
        return {
          frame: { type: 'ai_chat_model', sessionId, model: `m${index}`, thoughtLevel: 'high' },
          heard: [`option ${sessionId} model m${index}`, `option ${sessionId} thought_level high`],
        }
      case 'words':
        return { frame: chat, heard: [prompt] }
      case 'an image':
        return { frame: { ...chat, images: [image, image] }, heard: [prompt] }
      case 'a lost image':
        return { frame: { ...chat, images: [`i_${'0'.repeat(20)}`] }, heard: [] }
      case 'stop':
        return { frame: { type: 'ai_chat_cancel', sessionId }, heard: [`cancel ${sessionId}`] }
    }
  }

  test('reach the agent in the order in which they were sent, also when some fail', async () => {
    const all: Said[] = ['mode', 'model and level', 'words', 'an image', 'a lost image', 'stop']
    const saying = fc.array(fc.constantFrom(...all), { minLength: 2, maxLength: 8 })
    await fc.assert(
      fc.asyncProperty(saying, async (said) => {
        const requestId = newId('r')
        tab.send({ type: 'ai_chat', requestId, text: 'hello' })
        const { sessionId } = await tab.get('ai_chat_accepted', (frame) => frame.requestId === requestId)
        await tab.get('ai_chat_done', (frame) => frame.sessionId === sessionId)
        const reached = (): string[] =>
          harness.agent.received.filter((line) => line.includes(sessionId)).slice(2)
        const meant = said.map((one, index) => meaning(one, sessionId, index))
        for (const { frame } of meant) tab.send(frame)
        const heard = meant.flatMap((one) => one.heard)
        await waitFor(() => reached().length >= heard.length)
        expect(reached()).toEqual(heard)
      }),
      {
        numRuns: 15,
        // Frames of a page that was offline.
        examples: [
          [['mode', 'model and level', 'words']],
          [['an image', 'words', 'stop', 'mode', 'words', 'words']],
        ],
      },
    )
  })
})
