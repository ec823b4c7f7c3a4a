/** Server state of a view: which answer is shown, what is asked again, what ends with the view. */
import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { extent } from '../../../../test/campaign.ts'
import { ApiError } from '../../src/net/http.ts'
import { Resource } from '../../src/state/resource.ts'

beforeEach(() => {
  vi.useFakeTimers()
  vi.stubGlobal('document', { visibilityState: 'visible' })
})
afterEach(() => {
  vi.useRealTimers()
  vi.unstubAllGlobals()
})

const settled = async () => {
  for (let n = 0; n < 8; n++) await Promise.resolve()
}
const randomOf = (seed: number) => () => {
  seed = (seed * 1_103_515_245 + 12_345) % 2 ** 31
  return seed / 2 ** 31
}

/** Answers are numbers in the order of the questions. Returns what was shown, and the last number. */
async function interleave(seed: number): Promise<{ shown: number[]; asked: number; key: string | null }> {
  const random = randomOf(seed)
  const resource = new Resource<number>()
  const shown: number[] = []
  resource.store.subscribe(({ data }) => data !== null && data !== shown.at(-1) && shown.push(data))
  const open: (() => void)[] = []
  let asked = 0
  const ask = () => {
    const answer = ++asked
    return new Promise<number>((resolve) => open.push(() => resolve(answer)))
  }
  const actions = [
    () => void resource.load(),
    () => void resource.change(ask),
    () => void resource.change(async () => void (await ask())),
    () => resource.start(random() < 0.5 ? 'a' : 'b', ask),
  ]
  resource.start('a', ask)
  for (let step = 0; step < 12 || open.length > 0; step++) {
    if (step < 12 && random() < 0.5) actions[Math.floor(random() * actions.length)]?.()
    else open.splice(Math.floor(random() * open.length), 1)[0]?.()
    await settled()
  }
  const { key, data } = resource.store.getState()
  expect(resource.store.getState()).toMatchObject({ busy: false, unread: null, refused: null })
  expect(data).toBe(shown.at(-1))
  return { shown, asked, key }
}

test('in every order of answers, the last question is answered last', async () => {
  for (let seed = 1; seed <= extent(300, 20_000); seed++) {
    const { shown, asked } = await interleave(seed)
    expect(shown, `seed ${seed}`).toEqual(shown.toSorted((a, b) => a - b))
    expect(shown.at(-1), `seed ${seed}`).toBe(asked)
  }
})

test('the request ends with the view, and with a newer question', async () => {
  const resource = new Resource<string>()
  const signals: AbortSignal[] = []
  const ask = (signal: AbortSignal) => {
    signals.push(signal)
    return new Promise<string>((_, reject) =>
      signal.addEventListener('abort', () => reject(new Error('ended'))),
    )
  }
  resource.start('key', ask, { everyMs: () => 10 })
  void resource.load()
  expect(signals.map(({ aborted }) => aborted)).toEqual([true, false])
  resource.stop()
  await settled()
  vi.advanceTimersByTime(1_000)
  expect(signals.map(({ aborted }) => aborted)).toEqual([true, true])
  expect(resource.store.getState().unread).toBeNull()
})

test('a passing failure is shown and asked again, another one is only shown', async () => {
  const resource = new Resource<string>()
  let code: 'network' | 'forbidden' | null = 'network'
  let asked = 0
  resource.start('key', async () => {
    asked++
    await Promise.resolve()
    if (code !== null) throw new ApiError(code, code)
    return 'here'
  })
  await settled()
  expect(resource.store.getState().unread).toBe('network')
  code = null
  await vi.advanceTimersByTimeAsync(1_000)
  expect(resource.store.getState()).toMatchObject({ data: 'here', unread: null })
  code = 'forbidden'
  await resource.load()
  await vi.advanceTimersByTimeAsync(60_000)
  expect(resource.store.getState()).toMatchObject({ data: 'here', unread: 'forbidden' })
  expect(asked).toBe(3)
})

test('it is asked again only while the page is visible', async () => {
  const resource = new Resource<number>()
  let asked = 0
  resource.start('key', () => Promise.resolve(++asked), { everyMs: () => 100 })
  await vi.advanceTimersByTimeAsync(250)
  expect(asked).toBe(3)
  vi.stubGlobal('document', { visibilityState: 'hidden' })
  await vi.advanceTimersByTimeAsync(1_000)
  expect(asked).toBe(3)
})

test('a conflict shows what is there now, and stays explained', async () => {
  const resource = new Resource<string>()
  let there = 'old'
  resource.start('key', () => Promise.resolve(there))
  await settled()
  await resource.change(() => {
    there = 'of another'
    return Promise.reject(new ApiError('conflict', 'Somebody was first.'))
  })
  expect(resource.store.getState()).toMatchObject({
    data: 'of another',
    refused: 'Somebody was first.',
    busy: false,
  })
})
