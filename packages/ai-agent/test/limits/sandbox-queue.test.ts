import { SandboxError } from '@sandlot/sandbox/errors'
import type { Sandbox } from '@sandlot/sandbox/sandbox'
import { queueText } from '@sandlot/shared/chat/queue-wait'
import { expect, test } from 'vitest'
import { PromptQueue } from '../../src/limits/prompt-queue.ts'
import { SandboxQueue } from '../../src/limits/sandbox-queue.ts'

/** A host for so many sandboxes, by their users. */
function host(places: number) {
  const running = new Set<string>()
  const order: string[] = []
  const acquire = async (userId: string): Promise<Sandbox> => {
    if (!running.has(userId) && running.size >= places) throw new SandboxError('host_full', 'No room.')
    running.add(userId)
    order.push(userId)
    return { bootId: userId } as Sandbox
  }
  const log = { info: () => undefined, warn: () => undefined }
  const queue = new SandboxQueue({
    limit: places,
    acquire,
    connected: async (userId) => (running.has(userId) ? acquire(userId) : undefined),
    queue: new PromptQueue({ slots: 1, leaving: new AbortController().signal, log }),
    retryMs: 5,
  })
  return { queue, running, order }
}

const never = new AbortController().signal

test('where the host is full people take turns for a sandbox, and say where they stand', async () => {
  const { queue, running, order } = host(1)
  await queue.acquire('ada', never)
  const words: Record<string, string[]> = {}
  const wait = (name: string): Promise<Sandbox> =>
    queue.acquire(
      name,
      never,
      (at) => void (words[name] ??= []).push(at.place === 0 ? 'gone' : queueText(at)),
    )
  const bob = wait('bob')
  await expect.poll(() => words['bob']).toEqual(['1st in line: the one sandbox is in use'])
  const [again, cleo] = [wait('bob'), wait('cleo')]
  await expect.poll(() => words['cleo']).toEqual(['2nd in line: the one sandbox is in use'])
  // A prompt with a slot needs none.
  await queue.acquire('ada', never)
  running.delete('ada')
  expect(await Promise.all([bob, again])).toHaveLength(2)
  running.delete('bob')
  expect((await cleo).bootId).toBe('cleo')
  expect(words['cleo']?.at(-1)).toBe('gone')
  expect([...new Set(order)]).toEqual(['ada', 'bob', 'cleo'])
})

test('a Stop leaves the line at once, and the next moves up', async () => {
  const { queue, running } = host(1)
  await queue.acquire('ada', never)
  const stop = new AbortController()
  const bob = queue.acquire('bob', stop.signal)
  const places: number[] = []
  const cleo = queue.acquire('cleo', never, ({ place }) => void places.push(place))
  await expect.poll(() => places).toEqual([2])
  stop.abort('cancelled')
  await expect(bob).rejects.toBeDefined()
  await expect.poll(() => places).toEqual([2, 1])
  running.delete('ada')
  expect((await cleo).bootId).toBe('cleo')
})
