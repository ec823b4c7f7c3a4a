/** A new chat whose first prompt comes right behind the request that makes it, as our service sends them. */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { setImmediate as turn } from 'node:timers/promises'
import { methods } from '@agentclientprotocol/sdk'
import { metaOf, sandlotEventOf, type SessionEvent } from '@sandlot/shared/chat/events'
import { SandlotError } from '@sandlot/shared/base/errors'
import { expect, test } from 'vitest'
import { AgentBench } from '../support/agent-fixture.ts'
import { textAnswer } from '../support/fake-provider.ts'
import { ADA, by, connect, text, type TestClient } from './test-client.ts'

function send(one: TestClient, sessionId: string): Promise<Record<string, unknown>>[] {
  const made = { cwd: '/workspace', mcpServers: [], ...by(ADA, { sessionId }) }
  const asked = { sessionId, prompt: text('hello'), ...by(ADA, { requestId: `r_${sessionId}` }) }
  return [one.request(methods.agent.session.new, made), one.request(methods.agent.session.prompt, asked)]
}

test('is one commit with its first prompt, before the model is asked and before anything is shown', async () => {
  let atRequest = Number.NaN
  // Frames of the write-ahead log that end a transaction.
  const commits = (): number => {
    const log = readFileSync(join(bench.folder, 'sessions.db-wal'))
    const frame = 24 + log.readUInt32BE(8)
    let count = 0
    for (let at = 32; at + frame <= log.length; at += frame) if (log.readUInt32BE(at + 4) !== 0) count++
    return count
  }
  const answer = async () => {
    atRequest = commits()
    return textAnswer('hi')
  }
  await using bench = await AgentBench.start([answer])
  const core = await bench.core()
  await using one = await connect(core)
  const before = commits()
  const sent = send(one, 's_one')
  while (one.updates.length === 0) await turn()
  const atFirstUpdate = commits()
  await Promise.all(sent)
  expect([atFirstUpdate, atRequest].map((at) => at - before)).toEqual([1, 1])
  const events = one.updates.map(({ update }) => update as unknown as SessionEvent)
  const seqs = events.flatMap((event) => metaOf(event).seq ?? [])
  expect(seqs).toEqual(seqs.map((_, place) => place + 1))
  expect(events.map((event) => sandlotEventOf(event)?.type)).toContain('prompt_ended')
})

test('that cannot be stored is neither made nor prompted nor shown, and can be sent again', async () => {
  await using bench = await AgentBench.start([textAnswer('hi')])
  let refuses = true
  const core = await bench.core({
    wrap: (parts) => ({
      ...parts,
      store: {
        ...parts.store,
        async createSession(...row) {
          if (!refuses) return parts.store.createSession(...row)
          await turn()
          throw new SandlotError('store_full', 'There is no room.')
        },
      },
    }),
  })
  await using one = await connect(core)
  const refused = await Promise.allSettled(send(one, 's_two'))
  expect(refused.map(({ status }) => status)).toEqual(['rejected', 'rejected'])
  expect(await core.store.getSession('s_two')).toBeUndefined()
  expect(one.updates).toEqual([])
  expect(bench.provider.requests).toEqual([])
  refuses = false
  expect((await Promise.all(send(one, 's_two')))[1]).toMatchObject({ stopReason: 'end_turn' })
  const twice = await Promise.allSettled(send(one, 's_two'))
  expect(twice.map(({ status }) => status)).toEqual(['rejected', 'fulfilled'])
  expect(bench.provider.requests.filter(({ body }) => body.stream === true)).toHaveLength(1)
})
