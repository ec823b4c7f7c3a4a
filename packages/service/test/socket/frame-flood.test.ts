/** A browser that sends more than anybody can answer costs the service a bounded amount. */
import { once } from 'node:events'
import type { AddressInfo } from 'node:net'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import fc from 'fast-check'
import { newId } from '@sandlot/shared/base/ids'
import { expect, test } from 'vitest'
import { WebSocket, WebSocketServer } from 'ws'
import { DEFAULT_RATES } from '../../src/auth/limits.ts'
import type { Clock } from '../../src/auth/user-traffic.ts'
import { NewestOnly } from '../../src/chat/in-order.ts'
import { answerPings } from '../../../shared/src/node/keep-alive.ts'
import { type Harness, Tab, waitFor } from '../support/harness.ts'
import { useHarness } from '../support/use-harness.ts'

const now = useHarness()

setFlagsFromString('--expose-gc')
const collect = runInNewContext('gc') as () => void
/** Bytes that are in use, without garbage. */
function used(): number {
  collect()
  return process.memoryUsage().heapUsed
}
const turn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve))

/** Frames are held by their number alone: a user's share of requests has a test of its own. */
const NO_PACE: Clock = { now: () => performance.now() * 1_000_000, sleep: () => Promise.resolve() }

async function begun(deps: Parameters<Harness['restart']>[0] = {}): Promise<{ tab: Tab; sessionId: string }> {
  await now().harness.restart({ clock: NO_PACE, ...deps })
  const tab = await Tab.of(now().ann, now().harness.service.url)
  tab.send({ type: 'ai_chat', requestId: newId('r'), text: 'hello' })
  const { sessionId } = await tab.get('ai_chat_accepted')
  await tab.get('ai_chat_done')
  return { tab, sessionId }
}

test('of 200,000 resumes of a chat one runs and the newest waits', async () => {
  const { agent } = now().harness
  const { tab, sessionId } = await begun()
  const loading = Promise.withResolvers<void>()
  agent.beforeLoad = () => loading.promise
  const before = used()
  for (let after = 1; after <= 200_000; after++) {
    tab.send({ type: 'ai_chat_resume', sessionId, after })
    if (after % 1_000 === 0) await turn()
  }
  await tab.settle()
  const loads = (): string[] => agent.received.filter((what) => what.startsWith('load'))
  await waitFor(() => loads().length > 0)
  expect(loads()).toEqual([`load ${sessionId} 1`])
  expect((used() - before) / 2 ** 20).toBeLessThan(16)
  loading.resolve()
  await tab.get('ai_chat_caught_up', ({ seq }) => seq === 200_000)
  expect(loads()).toEqual([`load ${sessionId} 1`, `load ${sessionId} 200000`])
  await tab.close()
})

const FRAMES = 300
test.each<[string, (sessionId: string, n: number) => object]>([
  ['resumes of other chats', () => ({ type: 'ai_chat_resume', sessionId: newId('s'), after: 0 })],
  [
    'answers to approvals',
    (sessionId, n) => ({ type: 'ai_chat_approve', sessionId, toolCallId: `c${n}`, optionId: 'allow' }),
  ],
  ['stops of calls', (sessionId, n) => ({ type: 'ai_chat_cancel', sessionId, toolCallId: `c${n}` })],
  ['stops', (sessionId) => ({ type: 'ai_chat_cancel', sessionId })],
  ['withdrawals', (sessionId) => ({ type: 'ai_chat_unqueue', sessionId, messageId: newId('m') })],
  ['modes', (sessionId) => ({ type: 'ai_chat_mode', sessionId, modeId: 'manual' })],
  ['models', (sessionId) => ({ type: 'ai_chat_model', sessionId, model: 'small', thoughtLevel: null })],
])('of many %s at most 64 are on their way, and none is lost', async (_what, frame) => {
  const { agent } = now().harness
  const { tab, sessionId } = await begun()
  const held: (() => void)[] = []
  let [most, all] = [0, 0]
  agent.beforeOwned = () => {
    all++
    return new Promise((resolve) => {
      most = Math.max(most, held.push(resolve))
    })
  }
  for (let n = 0; n < FRAMES; n++) tab.send(frame(sessionId, n))
  const seen = { isRead: false }
  void tab.settle().then(() => (seen.isRead = true))
  const isOver = (): boolean => seen.isRead && all >= FRAMES
  while (!isOver()) {
    await turn()
    held.shift()?.()
  }
  expect(most).toBeLessThanOrEqual(64)
  expect(tab.frames.filter((one) => one.type === 'ai_chat_error' && one.code === 'rate_limited')).toEqual([])
  agent.beforeOwned = () => Promise.resolve()
  for (const release of held) release()
  await tab.close()
})

test('of messages that do not end at most 128 are held, and a stop still gets through', async () => {
  const prompts = { points: 1_000, seconds: 60 }
  const { agent } = now().harness
  const { tab, sessionId } = await begun({ rates: { ...DEFAULT_RATES, prompts } })
  const ended = Promise.withResolvers<undefined>()
  agent.script = () => ended.promise
  for (let n = 0; n < 200; n++)
    tab.send({ type: 'ai_chat', requestId: newId('r'), sessionId, text: `${n}`, whenBusy: 'queue' })
  await tab.settle()
  const refused = (): number => tab.frames.filter((one) => one.type === 'ai_chat_error').length
  await waitFor(() => refused() === 200 - 128)
  tab.send({ type: 'ai_chat_cancel', sessionId })
  await waitFor(() => agent.received.includes(`cancel ${sessionId}`))
  ended.resolve(undefined)
  await tab.close()
})

test('pings of a peer that reads no answer do not add up', async () => {
  const server = new WebSocketServer({ port: 0, host: '127.0.0.1', autoPong: false })
  await once(server, 'listening')
  const connected = once(server, 'connection')
  const peer = new WebSocket(`ws://127.0.0.1:${(server.address() as AddressInfo).port}`)
  const [[socket]] = (await Promise.all([connected, once(peer, 'open')])) as [[WebSocket], unknown]
  answerPings(socket)
  let pings = 0
  socket.on('ping', () => pings++)
  peer.pause()
  const payload = Buffer.alloc(120)
  for (let n = 1; n <= 200_000; n++) {
    peer.ping(payload)
    if (n % 1_000 === 0) await turn()
  }
  await waitFor(() => pings === 200_000)
  expect(socket.bufferedAmount).toBeLessThan(1_024)
  const last = new Promise((resolve) => peer.on('pong', (data) => data.length === 1 && resolve(data)))
  peer.ping(Buffer.alloc(1))
  peer.resume()
  await last
  peer.terminate()
  await new Promise((resolve) => server.close(resolve))
})

test('the newest work of a key always runs, one at a time, and no other waits for it', async () => {
  await fc.assert(
    fc.asyncProperty(fc.scheduler(), fc.array(fc.nat(2), { maxLength: 20 }), async (scheduler, keys) => {
      const newest = new NewestOnly()
      const running = new Set<number>()
      const ran = new Map<number, number>()
      const runs = keys.map((key, at) =>
        scheduler.schedule(Promise.resolve()).then(() =>
          newest.run(`${key}`, async () => {
            expect(running.has(key)).toBe(false)
            running.add(key)
            await scheduler.schedule(Promise.resolve())
            running.delete(key)
            ran.set(key, at)
            if (at % 5 === 0) throw new Error('a failure')
          }),
        ),
      )
      await scheduler.waitFor(Promise.allSettled(runs))
      expect(running.size).toBe(0)
      expect(new Set(ran.keys())).toEqual(new Set(keys))
    }),
  )
})
