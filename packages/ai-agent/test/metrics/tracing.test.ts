/** Spans as a collector gets them: the real loop, scheduler and SDK, a receiver on loopback. */
import { execFile } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { SandboxError } from '@sandlot/sandbox/errors'
import { expect, test } from 'vitest'
import { z } from 'zod'
import { AgentMetrics } from '../../src/metrics/agent-metrics.ts'
import { openTracing } from '../../src/metrics/tracing.ts'
import { defineTool } from '../../src/tools/tool.ts'
import { AgentBench, ask, echoTool, newSession } from '../support/agent-fixture.ts'
import { textAnswer, toolCalls } from '../support/fake-provider.ts'
import { startOtlpReceiver } from '../support/otlp-receiver.ts'

const SECRET = 'the words of Ada'

/** Needs its person's sandbox. */
const sandboxed = defineTool({
  name: 'sandboxed',
  description: 'Needs a sandbox.',
  kind: 'other',
  input: z.strictObject({ text: z.string().describe('What for.') }),
  readOnly: true,
  title: () => 'Sandboxed',
  // oxlint-disable-next-line require-yield
  async *execute(_args, ctx) {
    await ctx.sandbox()
    return { status: 'completed', forModel: 'never' }
  },
})

test('a prompt is a span, and below it are its requests, its calls and the start of its sandbox', async () => {
  await using receiver = await startOtlpReceiver()
  const tracing = await openTracing({ endpoint: `${receiver.endpoint}/`, serviceName: 'ours', version: '1' })
  await using bench = await AgentBench.start([
    toolCalls(
      [
        { id: 'a', name: 'echo', args: { text: SECRET } },
        { id: 'b', name: 'sandboxed', args: { text: SECRET } },
      ],
      { usage: { prompt_tokens: 120, completion_tokens: 7, prompt_tokens_details: { cached_tokens: 100 } } },
    ),
    { status: 500, steps: ['no'] },
    textAnswer(SECRET),
  ])
  const core = await bench.core({
    tools: [echoTool(), sandboxed],
    parts: {
      metrics: new AgentMetrics(tracing),
      sandbox: (userId) =>
        tracing.sandboxStart(userId, Promise.reject(new SandboxError('engine_unavailable', SECRET))),
    },
  })
  const session = await newSession(core)
  const { promptId } = await ask(session, SECRET)
  await tracing.close()

  const { spans } = receiver
  const [prompt] = spans.filter(({ parentId }) => parentId === '')
  expect(prompt).toMatchObject({
    name: 'invoke_agent Sandlot',
    failed: false,
    attributes: {
      'gen_ai.operation.name': 'invoke_agent',
      'gen_ai.conversation.id': session.id,
      'sandlot.prompt.id': promptId,
      'sandlot.end.reason': 'completed',
    },
  })
  const below = spans.filter((span) => span !== prompt)
  expect(new Set(below.map(({ parentId }) => parentId))).toEqual(new Set([prompt?.spanId]))
  expect(new Set(spans.map(({ traceId }) => traceId)).size).toBe(1)
  expect(prompt?.tookNs).toBeGreaterThan(
    below.reduce((most, { tookNs }) => (tookNs > most ? tookNs : most), 0n),
  )

  const named = (name: string) => below.filter((span) => span.name === name)
  expect(named('chat fake')).toMatchObject([
    {
      failed: false,
      attributes: {
        'gen_ai.operation.name': 'chat',
        'gen_ai.request.model': 'fake',
        'gen_ai.response.finish_reasons': ['tool_calls'],
        'gen_ai.usage.input_tokens': 120,
        'gen_ai.usage.output_tokens': 7,
        'gen_ai.usage.cache_read.input_tokens': 100,
        'sandlot.first_token_ms': expect.any(Number),
      },
    },
    { failed: true, attributes: { 'error.type': 'server_error' } },
    { failed: false, attributes: { 'gen_ai.response.finish_reasons': ['stop'] } },
  ])
  expect(named('execute_tool echo')).toMatchObject([
    { failed: false, attributes: { 'gen_ai.tool.name': 'echo', 'gen_ai.tool.type': 'function' } },
  ])
  expect(named('execute_tool sandboxed')).toMatchObject([
    { failed: true, attributes: { 'error.type': 'sandbox_unavailable' } },
  ])
  expect(named('start sandbox')).toMatchObject([
    { failed: true, attributes: { 'error.type': 'engine_unavailable' } },
  ])
  expect(below).toHaveLength(6)

  expect(receiver.resource).toMatchObject({ 'service.name': 'ours' })
  expect(receiver.requests.map(({ path }) => path)).toEqual(['/v1/traces'])
  // Nothing that a person, a model or a tool said, and no command line of the process.
  for (const { body } of receiver.requests) {
    expect(body.includes(SECRET)).toBe(false)
    expect(body.includes('process.command')).toBe(false)
  }
})

test('an endpoint that is not there holds up neither prompts nor the end', async () => {
  await using bench = await AgentBench.start([textAnswer('done')])
  const tracing = await openTracing({ endpoint: 'http://127.0.0.1:9', serviceName: 'ours', version: '1' })
  const session = await newSession(await bench.core({ parts: { metrics: new AgentMetrics(tracing) } }))
  await ask(session, 'go')
  const began = performance.now()
  await tracing.close()
  expect(performance.now() - began).toBeLessThan(8_000)
})

test('an agent that sends no spans has loaded nothing of OpenTelemetry', async () => {
  const agent = new URL('../../src/agent/agent.ts', import.meta.url).href
  const code = `
    import { registerHooks } from 'node:module'
    const loaded = []
    registerHooks({ load: (url, context, next) => (loaded.push(url), next(url, context)) })
    await import(${JSON.stringify(agent)})
    console.log(JSON.stringify([loaded.length, loaded.filter((url) => url.includes('@opentelemetry'))]))`
  const flags = ['--conditions=sandlot-source', '--input-type=module', '-e', code]
  const { stdout } = await promisify(execFile)(process.execPath, flags, {
    cwd: fileURLToPath(new URL('../..', import.meta.url)),
  })
  const [count, ours] = JSON.parse(stdout) as [number, string[]]
  expect(count).toBeGreaterThan(100)
  expect(ours).toEqual([])
}, 30_000)
