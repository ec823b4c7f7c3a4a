import fc from 'fast-check'
import { expect, test } from 'vitest'
import { PasswordHasher } from '../../src/accounts/auth-passwords.ts'

const QUEUE = 32
const refusal = { code: 'rate_limited', retryAfterSeconds: 2 }

test('one hash runs for each two cores, 32 wait in order, a further one is refused, in any interleaving', async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.integer({ min: 1, max: 9 }),
      fc.array(fc.boolean(), { minLength: 40, maxLength: 120 }),
      async (cores, comes) => {
        const hasher = new PasswordHasher(cores)
        const atOnce = Math.max(1, Math.floor(cores / 2))
        const running: PromiseWithResolvers<number>[] = []
        const began: number[] = []
        const answers: Promise<number>[] = []
        let pending = 0
        for (const [id, isNew] of comes.entries()) {
          if (isNew) {
            const answer = hasher.run(() => {
              began.push(id)
              const work = Promise.withResolvers<number>()
              running.push(work)
              return work.promise
            })
            if (pending < atOnce + QUEUE) {
              pending++
              answers.push(answer)
            } else await expect(answer).rejects.toMatchObject(refusal)
          } else if (running.length > 0) {
            running.shift()?.resolve(id)
            pending--
          }
          // The next in the queue has begun.
          await new Promise(setImmediate)
          expect(running).toHaveLength(Math.min(atOnce, pending))
        }
        expect(began).toEqual(began.toSorted((a, b) => a - b))
        while (pending-- > 0) {
          running.shift()?.resolve(0)
          await new Promise(setImmediate)
        }
        await Promise.all(answers)
      },
    ),
  )
})

test('a failed piece of work leaves the queue, and a password is known by its hash', async () => {
  const hasher = new PasswordHasher(1)
  const failing = Array.from({ length: QUEUE + 1 }, () =>
    hasher.run(() => Promise.reject(new Error('no memory'))),
  )
  await expect(hasher.hash('correct horse')).rejects.toMatchObject(refusal)
  for (const failed of failing) await expect(failed).rejects.toThrow('no memory')
  const hash = await hasher.hash('correct horse')
  expect(await hasher.verify({ hash, password: 'correct horse' })).toBe(true)
  expect(await hasher.verify({ hash, password: 'battery staple' })).toBe(false)
})
