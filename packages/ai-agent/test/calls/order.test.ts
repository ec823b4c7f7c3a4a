import fc from 'fast-check'
import { expect, test } from 'vitest'
import { CallOrder } from '../../src/calls/order.ts'

const flags = fc.array(fc.boolean(), { minLength: 1, maxLength: 12 })

test('any calls, asked for and ended in any order: a change alone, reads together to the limit, the model’s order kept', async () => {
  await fc.assert(
    fc.asyncProperty(
      flags,
      fc.integer({ min: 1, max: 4 }),
      fc.array(fc.nat(), { maxLength: 40 }),
      async (reads, limit, picks) => {
        const order = new CallOrder(
          reads.map((readOnly) => ({ readOnly })),
          limit,
        )
        const running = new Set<number>()
        const over = new Set<number>()
        const begun: number[] = []
        const outside = new Set(reads.keys())
        const waiting = new Set<number>()
        for (let turn = 0; over.size < reads.length; turn++) {
          const pick = picks[turn % Math.max(1, picks.length)] ?? 0
          const choices = [...outside, ...running]
          expect(choices.length, 'somebody can always go on').toBeGreaterThan(0)
          const chosen = choices[pick % choices.length] ?? 0
          if (running.has(chosen)) {
            running.delete(chosen)
            over.add(chosen)
            order.over(chosen)
          } else {
            outside.delete(chosen)
            // Some end before their turn: denied.
            if (pick % 5 === 4) {
              over.add(chosen)
              order.over(chosen)
            } else {
              waiting.add(chosen)
              void order.enter(chosen).then(() => {
                waiting.delete(chosen)
                running.add(chosen)
                begun.push(chosen)
              })
            }
          }
          await Promise.resolve()
          await Promise.resolve()
          if (running.size > 1) expect([...running].every((at) => reads[at])).toBe(true)
          expect(running.size).toBeLessThanOrEqual(limit)
          for (const at of running) {
            const before = [...reads.keys()].filter((earlier) => earlier < at && !over.has(earlier))
            // Whatever comes before and is not over is a neighbour among the reads.
            const neighbours = before.every((earlier) => reads.slice(earlier, at + 1).every(Boolean))
            expect(neighbours, `${at} runs although ${before.join()} are not over`).toBe(true)
          }
        }
        expect(new Set(begun).size).toBe(begun.length)
      },
    ),
  )
})

test('asked twice, it is the same place', async () => {
  const order = new CallOrder([{ readOnly: false }, { readOnly: false }], 1)
  await order.enter(0)
  await order.enter(0)
  let entered = false
  void order.enter(1).then(() => {
    entered = true
  })
  await Promise.resolve()
  expect(entered).toBe(false)
  order.over(0)
  await order.enter(1)
})
