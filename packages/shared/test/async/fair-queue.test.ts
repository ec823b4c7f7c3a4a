import fc from 'fast-check'
import { expect, test } from 'vitest'
import { FairQueue } from '../../src/async/fair-queue.ts'

const settle = (): Promise<void> => new Promise((resolve) => setImmediate(resolve))
const step = fc.oneof(
  fc.record({ key: fc.constantFrom('ann', 'bob', 'cid'), fails: fc.boolean() }),
  fc.record({ ends: fc.nat() }),
)

test('while a key waits each other key begins at most one piece of work; each keeps its order, whatever fails', async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.integer({ min: 1, max: 3 }),
      fc.array(step, { maxLength: 60 }),
      async (atOnce, steps) => {
        const turns = new FairQueue(atOnce)
        const running: (() => void)[] = []
        /** Work that waits, by key, and the keys that began since it was this key's turn. */
        const waiting = new Map<string, { ids: number[]; since: string[] }>()
        const answers: Promise<unknown>[] = []
        const onBegin = (key: string, id: number): void => {
          const mine = waiting.get(key)
          expect(mine?.ids.shift()).toBe(id)
          waiting.delete(key)
          if (mine !== undefined && mine.ids.length > 0) waiting.set(key, { ids: mine.ids, since: [] })
          for (const [other, { since }] of waiting) if (other !== key) since.push(key)
          for (const { since } of waiting.values()) expect(new Set(since).size).toBe(since.length)
        }
        for (const [id, one] of steps.entries()) {
          if ('key' in one) {
            const mine = waiting.get(one.key) ?? { ids: [], since: [] }
            mine.ids.push(id)
            waiting.set(one.key, mine)
            const work = (): Promise<void> =>
              new Promise((resolve, reject) => {
                onBegin(one.key, id)
                running.push(() => (one.fails ? reject(new Error('on purpose')) : resolve()))
              })
            answers.push(turns.run(one.key, work).catch((error: unknown) => error))
          } else running.splice(one.ends % (running.length || 1), 1)[0]?.()
          await settle()
          expect(waiting.size === 0 || running.length === atOnce).toBe(true)
        }
        for (let end = running.shift(); end !== undefined; end = running.shift()) {
          end()
          await settle()
        }
        await Promise.all(answers)
        expect(waiting.size).toBe(0)
      },
    ),
  )
})
