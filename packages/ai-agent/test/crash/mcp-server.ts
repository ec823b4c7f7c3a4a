/**
 * An MCP server for crash scripts. `alter` and `wonder` write, `peek` reads; each notes its effect
 * in a journal outside, and reports progress before and after, so that a life can end on either
 * side of it. Over a pipe it is a process of its own (`node mcp-server.ts <journal>`) and dies with
 * the agent; over HTTP it lives on in the test and is not notified of the death.
 */
import { appendFileSync } from 'node:fs'
import { type ServerResponse, createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { createInterface } from 'node:readline'
import { text } from 'node:stream/consumers'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'

/** This program: over a pipe, with the journal as its argument. */
export const PIPE_SERVER = fileURLToPath(import.meta.url)

interface Message {
  id?: number | string
  method?: string
  params?: {
    name?: string
    arguments?: { key?: string }
    protocolVersion?: string
    _meta?: { progressToken?: unknown }
  }
  result?: { content?: { colour?: string } }
}

/** Says something to the client that asked. */
type Send = (message: object) => void

const STEP_MS = 8
const KEY = { type: 'object', properties: { key: { type: 'string' } } }
const TOOLS = [
  { name: 'peek', description: 'Reads.', inputSchema: KEY, annotations: { readOnlyHint: true } },
  { name: 'alter', description: 'Writes.', inputSchema: KEY },
  { name: 'wonder', description: 'Asks for a colour, then writes.', inputSchema: KEY },
]

class CrashServer {
  readonly #journal: string
  readonly #asked = new Map<string, (colour: string) => void>()

  constructor(journal: string) {
    this.#journal = journal
  }

  async take(message: Message, send: Send): Promise<void> {
    const { id, method, params } = message
    if (method === undefined) this.#asked.get(String(id))?.(message.result?.content?.colour ?? 'none')
    else if (method === 'initialize')
      send({
        id,
        result: {
          protocolVersion: params?.protocolVersion,
          capabilities: { tools: {} },
          serverInfo: { name: 'crash', version: '1' },
        },
      })
    else if (method === 'tools/list') send({ id, result: { tools: TOOLS } })
    else if (method === 'tools/call') await this.#call(message, send)
    else if (id !== undefined) send({ id, result: {} })
  }

  async #call({ id, params }: Message, send: Send): Promise<void> {
    const { name = '', arguments: { key = '' } = {}, _meta } = params ?? {}
    const report = async (progress: number): Promise<void> => {
      const progressToken = _meta?.progressToken
      if (progressToken !== undefined)
        send({ method: 'notifications/progress', params: { progressToken, progress, total: 2 } })
      await sleep(STEP_MS)
    }
    const what = name === 'wonder' ? `${key} in ${await this.#ask(String(id), send)}` : key
    await report(1)
    appendFileSync(this.#journal, `${name} ${what}\n`)
    await report(2)
    send({ id, result: { content: [{ type: 'text', text: `${name} ${what}: done` }] } })
  }

  #ask(id: string, send: Send): Promise<string> {
    const requestedSchema = { type: 'object', properties: { colour: { type: 'string' } } }
    send({
      id: `q${id}`,
      method: 'elicitation/create',
      params: { message: 'Which colour?', requestedSchema },
    })
    return new Promise((resolve) => void this.#asked.set(`q${id}`, resolve))
  }
}

export interface CrashHttpServer extends AsyncDisposable {
  url: string
}

/** The same over HTTP, one stream per call. */
export async function startCrashHttpServer(journal: string): Promise<CrashHttpServer> {
  const crash = new CrashServer(journal)
  const server = createServer((request, response) => {
    text(request).then(
      (body) => serve(crash, request.method === 'POST' ? (JSON.parse(body) as Message) : undefined, response),
      // The agent went away in the middle of its words.
      () => response.destroy(),
    )
  })
  await new Promise<void>((resolve) => void server.listen(0, '127.0.0.1', resolve))
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/mcp`,
    async [Symbol.asyncDispose]() {
      const closed = new Promise((resolve) => server.close(resolve))
      server.closeAllConnections()
      await closed
    },
  }
}

async function serve(
  crash: CrashServer,
  message: Message | undefined,
  response: ServerResponse,
): Promise<void> {
  if (message === undefined) return void response.writeHead(405).end()
  if (message.id === undefined) response.writeHead(202)
  else if (message.method === undefined) response.writeHead(202)
  else response.writeHead(200, { 'content-type': 'text/event-stream' })
  await crash.take(message, (said) =>
    response.write(`data: ${JSON.stringify({ jsonrpc: '2.0', ...said })}\n\n`),
  )
  response.end()
}

if (import.meta.main) {
  const crash = new CrashServer(process.argv[2] ?? '')
  const lines = createInterface({ input: process.stdin })
  const send: Send = (said) => process.stdout.write(`${JSON.stringify({ jsonrpc: '2.0', ...said })}\n`)
  lines.on('line', (line) => void crash.take(JSON.parse(line) as Message, send))
  lines.on('close', () => process.exit(0))
}
