import { setTimeout as sleep } from 'node:timers/promises'
import { parseExactly, stringifyExactly } from '@sandlot/shared/base/exact-numbers'
import { pendingApprovals } from '@sandlot/shared/chat/pending-approvals'
import { shownArguments } from '@sandlot/shared/transcript/call-arguments'
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { AgentBench, ask, newSession, textsForModel, whenHappened } from '../support/agent-fixture.ts'
import { type Scripted, textAnswer, toolCalls } from '../support/fake-provider.ts'
import { json, startHttpServer } from './http-server.ts'
import { type McpBench, openMcpBench, scripted } from './mcp-bench.ts'

const BIG = '1234567890123456789'
/** Integers as a model may write them, most of them far from what JavaScript holds. */
const integerText = fc
  .bigInt({ min: -(2n ** 130n), max: 2n ** 130n })
  .map(String)
  .filter((text) => text !== '0')
const numberText = fc.oneof(
  integerText,
  fc.constantFrom('1e400', '1e-400', '0.1234567890123456789', '52.520006599999998', '9007199254740993.5'),
)
/** The forms in which models and servers send one object of arguments. */
const FORMS: readonly ((args: string) => string)[] = [
  (args) => args,
  (args) => `\`\`\`json\n${args}\n\`\`\``,
  (args) => JSON.stringify(args),
  (args) => args.replace('{"id":', '{id: '),
  (args) => args.replace(/}$/, ',}'),
]

const tools = (mcp: McpBench) => ({
  parts: {
    tools: (userId: string, signal: AbortSignal) => mcp.mcp.servers.toolsOf(userId, signal),
  },
})
const callOf = (args: string): Scripted => toolCalls([{ id: `c${++calls}`, name: 'number', args }])
let calls = 0

describe('a number with more digits than JavaScript’s', () => {
  test('reaches the server with every digit in every form, comes back so, and stands so in the log', async () => {
    await using mcp = openMcpBench({ s: scripted('', { tools: ['number'] }) })
    await using bench = await AgentBench.start()
    const session = await newSession(await bench.core(tools(mcp)))
    const call = fc.record({ id: integerText, any: numberText, form: fc.constantFrom(...FORMS) })
    await fc.assert(
      fc.asyncProperty(fc.array(call, { minLength: 5, maxLength: 5 }), async (drawn) => {
        const made = drawn.map(({ id, any, form }) => {
          const args = `{"id":${id},"any":{"deep":[${any}]},"back":"${id}"}`
          return { id, args, call: { id: `c${++calls}`, name: 'number', args: form(args) } }
        })
        bench.provider.add(toolCalls(made.map((one) => one.call)), textAnswer('done'))
        await ask(session, 'go')
        const texts = textsForModel(session.log)
        for (const { id, args, call } of made) {
          const text = texts[call.id] ?? ''
          expect((JSON.parse(text) as { line: string }).line).toContain(`"arguments":${args}`)
          expect(text).toContain(`"id": ${id},`)
          const announced = session.log.find(
            (event) => event.sessionUpdate === 'tool_call' && event.toolCallId === call.id,
          )
          const rawInput = announced?.sessionUpdate === 'tool_call' ? announced.rawInput : undefined
          // Every hop between here and a browser does this.
          const onPage: unknown = JSON.parse(JSON.stringify(rawInput))
          expect(stringifyExactly(onPage)).toBe(args)
          expect(shownArguments(onPage).fields.find(({ name }) => name === 'id')?.text).toBe(id)
          expect(bench.provider.requests.at(-1)?.raw).toContain(JSON.stringify(args).slice(1, -1))
        }
      }),
      { numRuns: 10 },
    )
  })

  test('over HTTP, in one answer and in events that are cut anywhere', async () => {
    await using server = await startHttpServer()
    const bodies: string[] = []
    let events = false
    server.intercept = (_request, response, message, body) => {
      const answer = (result: string): string => `{"jsonrpc":"2.0","id":${message?.id},"result":${result}}`
      if (message?.method === 'tools/list') {
        const inputSchema = { type: 'object', properties: { id: { type: 'integer', maximum: 2 ** 63 } } }
        json(response, message.id, { tools: [{ name: 'number', inputSchema }] })
        return true
      }
      if (message?.method !== 'tools/call') return false
      bodies.push(body)
      const text = answer(`{"content":[],"structuredContent":{"ids":[${BIG},-${BIG}]}}`)
      if (!events) response.writeHead(200, { 'content-type': 'application/json' }).end(text)
      else
        response.writeHead(200, { 'content-type': 'text/event-stream' }).end(`id: 1\r\ndata: ${text}\r\n\r\n`)
      return true
    }
    await using mcp = openMcpBench({ web: { url: server.url } })
    await using bench = await AgentBench.start()
    const session = await newSession(await bench.core(tools(mcp)))
    for (events of [false, true]) {
      bench.provider.add(callOf(`{"id":${BIG}}`), textAnswer('done'))
      await ask(session, 'go')
      expect(bodies.at(-1)).toContain(`"arguments":{"id":${BIG}}`)
      expect(textsForModel(session.log)[`c${calls}`]).toMatch(new RegExp(`${BIG},\\s+-${BIG}`))
    }
  })

  test('is what an approval shows, what it is changed into, and what runs after a restart', async () => {
    await using mcp = openMcpBench({ s: scripted('', { tools: ['number'] }) })
    await using bench = await AgentBench.start([callOf(`{"id":${BIG}}`)])
    const core = await bench.core(tools(mcp))
    const session = await newSession(core, 'manual')
    await session.prompt('go')
    await whenHappened(session, 'approval_asked')
    const [waiting] = pendingApprovals(session.log)
    expect(stringifyExactly(waiting?.arguments)).toBe(`{"id":${BIG}}`)
    await core.leave()

    bench.provider.add(textAnswer('done'))
    const again = await bench.core(tools(mcp))
    await again.manager.resumeUnfinished()
    const resumed = await again.manager.get('u_ada', session.id)
    const input = parseExactly(`{"id":-${BIG}}`) as Record<string, unknown>
    await resumed.answer(`c${calls}`, 'allow_once', { input: JSON.parse(JSON.stringify(input)) })
    while (resumed.running) await sleep(2)
    const text = textsForModel(resumed.log)[`c${calls}`] ?? ''
    expect(text).toContain(`id is now -${BIG}`)
    expect(text).toContain(`\\"arguments\\":{\\"id\\":-${BIG}}`)
  })

  test('as text for a number, where the server wants one; refused where the schema wants a text', async () => {
    await using mcp = openMcpBench({ s: scripted('', { tools: ['number'] }) })
    await using bench = await AgentBench.start([
      callOf(`{"id":"${BIG}"}`),
      callOf(`{"back":${BIG}}`),
      textAnswer('done'),
    ])
    const session = await newSession(await bench.core(tools(mcp)))
    await ask(session, 'go')
    const [read, refused] = Object.values(textsForModel(session.log))
    expect(read).toContain(`\\"arguments\\":{\\"id\\":${BIG}}`)
    expect(read).toContain(`[The argument id was text and was read as the number ${BIG}.]`)
    expect(refused).toMatch(/Nothing was run[^]*back/)
  })
})
