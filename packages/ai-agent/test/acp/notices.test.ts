/**
 * Notes next to the conversation, for an editor that shows notices: while it happens, and not
 * again.
 */
import { methods } from '@agentclientprotocol/sdk'
import { expect, test } from 'vitest'
import { createHttpModel } from '../../src/model/http-model.ts'
import { AgentBench } from '../support/agent-fixture.ts'
import { errorAnswer, textAnswer } from '../support/fake-provider.ts'
import { type TestClient, connect, newSession, said, text } from './test-client.ts'

const noticed = (one: TestClient) =>
  one.updates.flatMap(({ update }) => (update.sessionUpdate === 'notice' ? [update] : []))

test('a fallback model is a notice while it happens, to a client that shows them; never out of the history', async () => {
  await using bench = await AgentBench.start([
    errorAnswer(402, { error: { message: 'insufficient_quota' } }),
    textAnswer('Here I am.'),
  ])
  const create = (model: string) => createHttpModel({ baseUrl: bench.provider.baseUrl, apiKey: '', model })
  const core = await bench.core({ parts: { model: create('main'), fallbacks: [create('spare')] } })
  const shows = { capabilities: {}, clientCapabilities: { session: { notices: {} } } }
  await using one = await connect(core, shows)
  await using plain = await connect(core, { capabilities: {} })
  const sessionId = await newSession(one, { cwd: '/workspace' })
  const again = { sessionId, cwd: '/workspace', mcpServers: [] }
  await plain.request(methods.agent.session.resume, again)
  await one.request(methods.agent.session.prompt, { sessionId, prompt: text('hi') })
  const title = 'Answered by spare because the previous model had no quota left'
  expect(noticed(one)).toEqual([{ sessionUpdate: 'notice', severity: 'warning', title }])
  expect(said(one, sessionId)).toBe('Here I am.')

  await one.request(methods.agent.session.load, again)
  await using late = await connect(core, shows)
  await late.request(methods.agent.session.load, again)
  expect(noticed(one)).toHaveLength(1)
  expect(said(late, sessionId)).toBe('Here I am.')
  expect([...noticed(late), ...noticed(plain)]).toEqual([])
})
