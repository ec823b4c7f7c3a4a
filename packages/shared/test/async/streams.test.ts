import { setTimeout as sleep } from 'node:timers/promises'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { mergeGenerators, Queue } from '../../src/async/streams.ts'

setFlagsFromString('--expose-gc')
const collectGarbage = runInNewContext('gc') as () => void

async function collect<T, R>(generator: AsyncGenerator<T, R>): Promise<{ values: T[]; result: R }> {
  const values: T[] = []
  for (;;) {
    const next = await generator.next()
    if (next.done === true) return { values, result: next.value }
    values.push(next.value)
  }
}

describe('mergeGenerators', () => {
  test('yields everything, each source in its order, and returns the results in the order of the sources', async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.array(fc.array(fc.nat(3), { maxLength: 5 }), { maxLength: 6 }),
        fc.integer({ min: 1, max: 7 }),
        async (plans, limit) => {
          let running = 0
          let most = 0
          const sources = plans.map(
            (delays, source) =>
              async function* () {
                most = Math.max(most, ++running)
                for (const [index, delay] of delays.entries()) {
                  for (let i = 0; i < delay; i++) await Promise.resolve()
                  yield { source, index }
                }
                running--
                return source
              },
          )
          const { values, result } = await collect(mergeGenerators(sources, limit))
          expect(result).toEqual(plans.map((_, source) => source))
          expect(most).toBeLessThanOrEqual(limit)
          plans.forEach((delays, source) => {
            expect(values.filter((value) => value.source === source).map((value) => value.index)).toEqual([
              ...delays.keys(),
            ])
          })
        },
      ),
    )
  })

  test('a source goes on only after its value was consumed', async () => {
    const log: string[] = []
    const source = (name: string) =>
      async function* () {
        yield name
        log.push(`${name} goes on`)
        return name
      }
    for await (const value of mergeGenerators([source('a'), source('b')])) {
      await new Promise((resolve) => setTimeout(resolve, 5))
      log.push(`${value} stored`)
    }
    expect(log.indexOf('a stored')).toBeLessThan(log.indexOf('a goes on'))
    expect(log.indexOf('b stored')).toBeLessThan(log.indexOf('b goes on'))
  })

  test('what was taken is kept by nobody, however long another source says nothing', async () => {
    const silence = Promise.withResolvers<void>()
    // oxlint-disable-next-line require-yield
    const silent = async function* (): AsyncGenerator<object, void> {
      await silence.promise
    }
    const talks = async function* (): AsyncGenerator<object, void> {
      for (let count = 0; count < 100; count++) yield { count }
    }
    const merged = mergeGenerators([silent, talks])
    const taken: WeakRef<object>[] = []
    for (let count = 0; count < 100; count++) {
      const { value } = await merged.next()
      if (typeof value === 'object') taken.push(new WeakRef(value))
    }
    const kept = (): number => {
      collectGarbage()
      return taken.filter((one) => one.deref() !== undefined).length
    }
    // WeakRefs read in one turn of the loop stay alive until its end.
    await sleep(1)
    await expect.poll(kept).toBeLessThan(5)
    silence.resolve()
    await merged.return([])
  })

  test('when one throws, the others are ended before the error comes out', async () => {
    let ended = false
    const fails = async function* (): AsyncGenerator<number, void> {
      yield 1
      throw new Error('broken')
    }
    const waits = async function* (): AsyncGenerator<number, void> {
      try {
        for (;;) yield 2
      } finally {
        ended = true
      }
    }
    await expect(collect(mergeGenerators<number, void>([waits, fails]))).rejects.toThrow('broken')
    expect(ended).toBe(true)
  })
})

describe('Queue', () => {
  test('delivers in order to a consumer that comes early or late, then ends', async () => {
    const queue = new Queue<number>()
    queue.push(1)
    const all = (async () => {
      const values: number[] = []
      for await (const value of queue) values.push(value)
      return values
    })()
    queue.push(2)
    await Promise.resolve()
    queue.push(3)
    queue.end()
    expect(queue.push(4)).toBe(false)
    expect(await all).toEqual([1, 2, 3])
  })

  test('refuses beyond its limit and throws what it failed with', async () => {
    const queue = new Queue<number>(1)
    expect(queue.push(1)).toBe(true)
    expect(queue.push(2)).toBe(false)
    queue.fail(new Error('gone'))
    const read = async (): Promise<void> => {
      for await (const value of queue) expect(value).toBe(1)
    }
    await expect(read()).rejects.toThrow('gone')
  })

  test('in any interleaving, each value is taken once, in order, and then the end', async () => {
    const pauses = fc.array(fc.nat(4), { maxLength: 40 })
    const pause = async (microtasks = 0): Promise<void> => {
      for (let count = 0; count < microtasks; count++) await Promise.resolve()
    }
    await fc.assert(
      fc.asyncProperty(pauses, pauses, fc.boolean(), async (pushes, takes, fails) => {
        const queue = new Queue<number>()
        const taken: number[] = []
        const consume = async (): Promise<void> => {
          for (let batch = 0; ; batch++) {
            const values = await queue.takeAll()
            if (values.length === 0) return
            taken.push(...values)
            await pause(takes[batch])
          }
        }
        const consumed = consume().catch((error: unknown) => error)
        for (const [value, microtasks] of pushes.entries()) {
          queue.push(value)
          await pause(microtasks)
        }
        if (fails) queue.fail('gone')
        else queue.end()
        expect(await consumed).toBe(fails ? 'gone' : undefined)
        expect(taken).toEqual([...pushes.keys()])
      }),
    )
  })

  test('is idle when all is taken and more is awaited', async () => {
    const queue = new Queue<number>()
    queue.push(1)
    let idle = false
    void queue.idle().then(() => (idle = true))
    expect(await queue.takeAll()).toEqual([1])
    expect(idle).toBe(false)
    const next = queue.takeAll()
    await queue.idle()
    queue.push(2)
    expect(await next).toEqual([2])
  })
})
