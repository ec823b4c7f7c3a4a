/** The page about ACP as a table, 1.1, 1.4 and 2: prompts, what is asked in them, how they end, and what bites. */
import { beforeAll, expect, test } from 'vitest'
import { textAnswer, toolCalls } from '../../support/fake-provider.ts'
import { initialized, newSession, text } from '../raw-client.ts'
import { EDITOR, hang, overBothWires } from './bench.ts'

/** A PNG of one pixel. */
const DOT = 'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=='

const shell = (id: string) => toolCalls([{ id, name: 'run_shell_command', args: { command: 'make' } }])

overBothWires((its) => {
  const { code, prompt } = its

  beforeAll(async () => void (await initialized(its.client, EDITOR)))

  test('session/prompt: pending for the whole prompt; text, resource_link and an embedded resource', async () => {
    its.provider.add(textAnswer('Read.'))
    const sessionId = await newSession(its.client)
    const blocks = [
      { type: 'text', text: 'Look at' },
      { type: 'resource_link', name: 'a.md', uri: 'file:///workspace/a.md' },
      {
        type: 'resource',
        resource: { uri: 'file:///workspace/b.md', mimeType: 'text/markdown', text: '# B' },
      },
    ]
    const answer = await its.client.request('session/prompt', { sessionId, prompt: blocks })
    expect(answer).toMatchObject({ stopReason: 'end_turn' })
    const asked = String(its.provider.requests.at(-1)?.body.messages.at(-1)?.content)
    for (const part of ['Look at', 'file:///workspace/a.md', 'file:///workspace/b.md', '# B'])
      expect(asked).toContain(part)
    const audio = { type: 'audio', data: '', mimeType: 'audio/wav' }
    for (const wrong of [[], text(' '), [audio]])
      expect(await code('session/prompt', { sessionId, prompt: wrong })).toBe(-32_602)
    expect(await code('session/prompt', { sessionId: 'nobody', prompt: text('hi') })).toBe(-32_002)
  })

  test('session/prompt: an image goes to the model, its echo does not come back, a load shows it again', async () => {
    its.provider.add(textAnswer('A dot.'))
    const sessionId = await newSession(its.client)
    const image = { type: 'image', mimeType: 'image/png', data: DOT }
    const blob = { uri: 'file:///a.png', mimeType: 'image/png', blob: image.data }
    const prompt = [...text('What is it?'), image, { type: 'resource', resource: blob }]
    await its.client.request('session/prompt', { sessionId, prompt })
    const content = JSON.stringify(its.provider.requests.at(-1)?.body.messages.at(-1)?.content)
    expect(content.split(`data:image/png;base64,${DOT}`)).toHaveLength(3)
    expect(its.client.kinds(sessionId)).not.toContain('user_message_chunk')
    await its.client.request('session/load', { sessionId, cwd: '/workspace', mcpServers: [] })
    const shown = its.client
      .updates(sessionId)
      .filter((update) => update.sessionUpdate === 'user_message_chunk')
    expect(shown.map((update) => update.content.type)).toEqual(['text', 'image', 'image'])
    for (const wrong of [
      { ...image, data: DOT.slice(0, 40) },
      { ...image, data: 'no image' },
    ])
      expect(await code('session/prompt', { sessionId, prompt: [wrong] })).toBe(-32_602)
  })

  test('session/cancel: the prompt ends cancelled, never as an error, and the session goes on', async () => {
    its.provider.add(hang, textAnswer('Here.'))
    const sessionId = await newSession(its.client)
    const running = its.client.begin('session/prompt', { sessionId, prompt: text('go') })
    await its.client.until(
      ({ params }) => params?.sessionId === sessionId && params?.update?.content?.text === 'Half',
    )
    its.client.notify('session/cancel', { sessionId })
    expect(await its.client.response(running)).toMatchObject({ result: { stopReason: 'cancelled' } })
    its.client.notify('session/cancel', { sessionId })
    expect(await prompt(sessionId)).toMatchObject({ stopReason: 'end_turn' })
  })

  test('$/cancel_request: a prompt is answered with a valid result', async () => {
    its.provider.add(hang)
    const sessionId = await newSession(its.client)
    const running = its.client.begin('session/prompt', { sessionId, prompt: text('go') })
    await its.client.until(
      ({ params }) => params?.sessionId === sessionId && params?.update?.content?.text === 'Half',
    )
    its.client.notify('$/cancel_request', { requestId: running })
    its.client.notify('$/cancel_request', { requestId: 'nobody' })
    expect(await its.client.response(running)).toMatchObject({ result: { stopReason: 'cancelled' } })
  })

  test('$/cancel_request: of a prompt that waits behind another one, which goes on', async () => {
    const asked = Promise.withResolvers<void>()
    const goOn = Promise.withResolvers<void>()
    its.provider.add(async () => {
      asked.resolve()
      await goOn.promise
      return textAnswer('The first is done.')
    })
    const sessionId = await newSession(its.client)
    const first = its.client.begin('session/prompt', { sessionId, prompt: text('first') })
    await asked.promise
    const second = its.client.begin('session/prompt', { sessionId, prompt: text('second') })
    its.client.notify('$/cancel_request', { requestId: second })
    // Answered behind both: a session’s messages take effect in their order.
    await its.client.request('session/set_mode', { sessionId, modeId: 'manual' })
    goOn.resolve()
    expect(await its.client.response(first)).toMatchObject({ result: { stopReason: 'end_turn' } })
    expect(its.client.said(sessionId)).toContain('The first is done.')
    // Its client has taken it back: it is not run.
    expect(await its.client.response(second)).toMatchObject({ result: { stopReason: 'cancelled' } })
    expect(JSON.stringify(its.provider.requests.at(-1)?.body.messages)).not.toContain('second')
  })

  test('session/request_permission: the call as it is and options by id; what is selected is done', async () => {
    its.provider.add(shell('a1'), textAnswer('not done'))
    const sessionId = await newSession(its.client)
    its.client.on('session/request_permission', () => ({
      outcome: { outcome: 'selected', optionId: 'reject_once' },
    }))
    await prompt(sessionId)
    const asked = its.client.asked.findLast(({ method }) => method === 'session/request_permission')
    expect(asked?.params).toMatchObject({
      sessionId,
      toolCall: { toolCallId: 'a1', kind: 'execute', status: 'pending', rawInput: { command: 'make' } },
    })
    const options: { optionId: string; kind: string; name: string }[] = asked?.params.options
    expect(new Set(options.map(({ optionId }) => optionId)).size).toBe(options.length)
    for (const { kind, name } of options) {
      expect(['allow_once', 'allow_always', 'reject_once', 'reject_always']).toContain(kind)
      expect(name).not.toBe('')
    }
    const outcome = its.client.updates(sessionId).findLast((update) => update.toolCallId === 'a1')
    expect(outcome).toMatchObject({ status: 'failed' })
    expect(JSON.stringify(its.provider.requests.at(-1)?.body.messages.at(-1))).toContain('did not allow')
  })

  test('session/request_permission: “cancelled” is no permission, and neither is an error', async () => {
    for (const id of ['a2', 'a3']) {
      its.provider.add(shell(id), textAnswer('ok'))
      const sessionId = await newSession(its.client)
      its.client.on('session/request_permission', () =>
        id === 'a2'
          ? { outcome: { outcome: 'cancelled' } }
          : { outcome: { outcome: 'selected', optionId: 'no such' } },
      )
      expect(await prompt(sessionId)).toMatchObject({ stopReason: 'end_turn' })
      expect(its.client.updates(sessionId).findLast((update) => update.toolCallId === id)).toMatchObject({
        status: 'failed',
      })
    }
  })

  test('on session/cancel an open request is withdrawn and the call ends failed', async () => {
    its.provider.add(shell('a4'))
    const sessionId = await newSession(its.client)
    its.client.on('session/request_permission', () => undefined)
    const running = its.client.begin('session/prompt', { sessionId, prompt: text('go') })
    const asked = await its.client.until(
      ({ method, params }) => method === 'session/request_permission' && params.sessionId === sessionId,
    )
    its.client.notify('session/cancel', { sessionId })
    await its.client.until(
      ({ method, params }) => method === '$/cancel_request' && params.requestId === asked.id,
    )
    its.client.sendText(
      JSON.stringify({ jsonrpc: '2.0', id: asked.id, result: { outcome: { outcome: 'cancelled' } } }),
    )
    expect(await its.client.response(running)).toMatchObject({ result: { stopReason: 'cancelled' } })
    expect(its.client.updates(sessionId).findLast((update) => update.toolCallId === 'a4')).toMatchObject({
      status: 'failed',
    })
  })

  test('stop reasons: end_turn, max_tokens, max_turn_requests, refusal; a broken model is end_turn with a sentence', async () => {
    const scripts = [
      [[textAnswer('Hi.')], 'end_turn'],
      [[textAnswer('Half of', { finish: 'length' })], 'max_tokens'],
      [
        ['s1', 's2', 's3'].map((id) => toolCalls([{ id, name: 'echo', args: { value: id } }])),
        'max_turn_requests',
      ],
      [[textAnswer('', { finish: 'content_filter' })], 'refusal'],
      [
        [
          {
            status: 401,
            headers: { 'content-type': 'application/json' },
            steps: ['{"error":{"message":"bad key"}}'],
          },
        ],
        'end_turn',
      ],
    ] as const
    for (const [script, stopReason] of scripts) {
      its.provider.add(...script)
      const sessionId = await newSession(its.client)
      expect(await prompt(sessionId)).toMatchObject({ stopReason })
      expect(its.client.said(sessionId)).not.toBe('')
    }
  })

  test('errors: a stable code and a safe text; no stack, no path, no secret', async () => {
    const wrong = [
      await its.client.call('session/prompt', { sessionId: 'nobody', prompt: text('hi') }),
      await its.client.call('session/new', { cwd: 7, mcpServers: 'none' }),
      await its.client.call('session/load', {}),
      await its.client.call('_sandlot/approve', { sessionId: 'nobody' }),
    ]
    expect(wrong.map(({ error }) => error?.code)).toEqual([-32_002, -32_602, -32_602, -32_602])
    expect(JSON.stringify(wrong)).not.toMatch(/node_modules|\.ts\b|\bat .*:\d+|sk-a-secret/)
  })

  test('_meta: trace context of the client is taken and left alone; none of ours has its names', async () => {
    const trace = {
      traceparent: '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01',
      tracestate: 'vendor=1',
      baggage: 'user=ada',
    }
    its.provider.add(textAnswer('Hello.'))
    const sessionId = await newSession(its.client, { _meta: trace })
    const asked = { sessionId, prompt: text('hi'), _meta: trace }
    expect(await its.client.request('session/prompt', asked)).toEqual({ stopReason: 'end_turn' })
    const { body, headers } = its.provider.requests.at(-1) ?? {}
    for (const name of Object.keys(trace))
      expect(JSON.stringify([its.client.received, body, headers])).not.toContain(name)
  })

  test('2.1 updates are in order and all before the response', async () => {
    const words = Array.from({ length: 200 }, (_, index) => `w${index} `).join('')
    its.provider.add(textAnswer(words, { pieceLength: 4 }))
    const sessionId = await newSession(its.client)
    const id = its.client.begin('session/prompt', { sessionId, prompt: text('count') })
    const answer = await its.client.response(id)
    expect(its.client.said(sessionId)).toBe(words)
    const last = its.client.received.findLastIndex(({ params }) => params?.sessionId === sessionId)
    expect(its.client.received.indexOf(answer)).toBeGreaterThan(last)
  })

  test('2.8 a batch is one -32600, a bad line is answered at once and repeats nothing, and the rest goes on', async () => {
    its.provider.add(hang)
    const sessionId = await newSession(its.client)
    const running = its.client.begin('session/prompt', { sessionId, prompt: text('go') })
    const bad = (): unknown[] => its.client.received.filter(({ id }) => id === null)
    const secret = 'my-own-secret'
    const lines = [
      `[{"jsonrpc":"2.0","id":900,"method":"session/list","params":{}},{"jsonrpc":"2.0","id":901,"method":"x"}]`,
      `{"jsonrpc":"2.0","id":902,"method":"session/list"`,
      `"${secret}"`,
      `{"id":903,"method":"session/list","token":"${secret}"}`,
      `{"jsonrpc":"2.0","id":{"a":1},"method":"session/list"}`,
    ]
    for (const [index, line] of lines.entries()) {
      its.client.sendText(line)
      await its.client.until(() => bad().length === index + 1)
    }
    expect(bad()).toMatchObject(
      [-32_600, -32_700, -32_600, -32_600, -32_600].map((wrong) => ({ error: { code: wrong } })),
    )
    expect(JSON.stringify(bad())).not.toContain(secret)
    expect(its.client.received.some(({ id }) => id === 900 || id === 901)).toBe(false)
    its.client.notify('session/cancel', { sessionId })
    expect(await its.client.response(running)).toMatchObject({ result: { stopReason: 'cancelled' } })
  })
})
