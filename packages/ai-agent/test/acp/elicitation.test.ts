/** A question of the agent on its way to an editor: a form, a permission request, or nothing, by what the editor knows. */
import {
  type AnyMessage,
  type ClientCapabilities,
  PROTOCOL_VERSION,
  client,
  methods,
} from '@agentclientprotocol/sdk'
import { expect, test } from 'vitest'
import { acpParts } from './test-client.ts'
import { createAcpServer } from '../../src/acp/server.ts'
import { askUser } from '../../src/tools/builtin/ask-user.ts'
import { AgentBench, type Core } from '../support/agent-fixture.ts'
import { textAnswer, toolCalls } from '../support/fake-provider.ts'

const CHOICE = { question: 'Which colour?', choices: ['red', 'blue'] }
const FORM = { question: 'How many?', fields: [{ name: 'count', type: 'number', required: true }] }

interface Editor {
  asked: { method: string; params: Record<string, unknown> }[]
  /** Sends one message and returns the model's text about the question. */
  ask(): Promise<string>
}

/** An editor that answers with `answer`; `forms`: it says that it can show them. */
async function editor(
  bench: AgentBench,
  core: Core,
  forms: boolean,
  answer: (params: Record<string, unknown>) => object,
): Promise<Editor> {
  const there = new TransformStream<AnyMessage, AnyMessage>()
  const back = new TransformStream<AnyMessage, AnyMessage>()
  createAcpServer(acpParts(core, { parts: { defaultMode: 'manual' } }))({
    readable: there.readable,
    writable: back.writable,
  })
  const asked: Editor['asked'] = []
  const handle =
    (method: string) =>
    async ({ params }: { params: object }): Promise<never> => {
      asked.push({ method, params: { ...params } })
      return answer({ ...params }) as never
    }
  const connection = client({ name: 'editor' })
    .onNotification('*', () => undefined)
    .onRequest(methods.client.session.requestPermission, handle('permission'))
    .onRequest(methods.client.elicitation.create, handle('form'))
    .connect({ readable: back.readable, writable: there.writable })
  const clientCapabilities: ClientCapabilities = forms ? { elicitation: { form: {} } } : {}
  const request = (method: string, params: object): Promise<Record<string, unknown>> =>
    connection.agent.request(method, params)
  await request(methods.agent.initialize, { protocolVersion: PROTOCOL_VERSION, clientCapabilities })
  return {
    asked,
    async ask() {
      const { sessionId } = await request(methods.agent.session.new, { cwd: '/workspace', mcpServers: [] })
      const prompt = [{ type: 'text', text: 'go' }]
      await request(methods.agent.session.prompt, { sessionId, prompt })
      const told = bench.provider.requests.at(-1)?.body.messages.at(-1)
      connection.close()
      return String(told?.content)
    },
  }
}

async function world(args: Record<string, unknown>): Promise<{ bench: AgentBench; core: Core }> {
  const call = { id: 'c1', name: 'ask_user', args }
  const bench = await AgentBench.start([toolCalls([call]), textAnswer('thanks')])
  return { bench, core: await bench.core({ tools: [askUser] }) }
}

test('an editor that shows forms gets the form, and its answer is the user’s', async () => {
  const { bench, core } = await world(FORM)
  await using _ = bench
  const zed = await editor(bench, core, true, () => ({ action: 'accept', content: { count: 3 } }))
  expect(await zed.ask()).toBe('The user answered:\ncount: 3')
  expect(zed.asked).toMatchObject([
    {
      method: 'form',
      params: {
        mode: 'form',
        toolCallId: 'c1',
        message: 'How many?',
        requestedSchema: { type: 'object', properties: { count: { type: 'number' } }, required: ['count'] },
      },
    },
  ])
})

test('a decline and a cancel are told apart', async () => {
  for (const [action, said] of [
    ['decline', 'chose not to answer'],
    ['cancel', 'without an answer'],
  ] as const) {
    const { bench, core } = await world(CHOICE)
    await using _ = bench
    const zed = await editor(bench, core, true, () => ({ action }))
    expect(await zed.ask()).toContain(said)
  }
})

test('an editor that only knows permissions chooses among the answers', async () => {
  const { bench, core } = await world(CHOICE)
  await using _ = bench
  const older = await editor(bench, core, false, () => ({
    outcome: { outcome: 'selected', optionId: 'choice_2' },
  }))
  expect(await older.ask()).toBe('The user answered:\nblue')
  expect(older.asked).toMatchObject([
    {
      method: 'permission',
      params: { options: [{ name: 'red' }, { name: 'blue' }, { name: 'Skip', kind: 'reject_once' }] },
    },
  ])
})

test('a form that an editor cannot show is asked as text by the model', async () => {
  const { bench, core } = await world(FORM)
  await using _ = bench
  const older = await editor(bench, core, false, () => expect.fail())
  expect(await older.ask()).toContain('end your turn with the question as text')
  expect(older.asked).toEqual([])
})

test('an answer that is none is not taken for one', async () => {
  const { bench, core } = await world(FORM)
  await using _ = bench
  const odd = await editor(bench, core, true, () => ({ action: 'accept', content: { count: 'three' } }))
  expect(await odd.ask()).toContain('Nobody can be shown a question here')
})
