/** An MCP server over HTTP by hand, with sessions, and with habits that tests change while it runs. */
import { randomUUID } from 'node:crypto'
import { type IncomingMessage, type ServerResponse, createServer } from 'node:http'
import type { AddressInfo } from 'node:net'

export interface Seen {
  method: string
  /** JSON-RPC method, of a POST. */
  rpc?: string
  headers: IncomingMessage['headers']
}

export interface HttpServer extends AsyncDisposable {
  url: string
  origin: string
  seen: Seen[]
  /** Sessions that it knows; clear it to forget them. */
  sessions: Set<string>
  /** Answers in place of the usual handling when it returns true. */
  intercept: (
    request: IncomingMessage,
    response: ServerResponse,
    message: Rpc | undefined,
    body: string,
  ) => boolean
  close(): Promise<void>
}

export interface Rpc {
  id?: number
  method?: string
  params?: { name?: string; arguments?: Record<string, unknown>; protocolVersion?: string }
}

export async function startHttpServer(): Promise<HttpServer> {
  const seen: Seen[] = []
  const sessions = new Set<string>()
  const server = createServer((request, response) => void serve(request, response))
  await new Promise<void>((resolve) => void server.listen(0, '127.0.0.1', resolve))
  const origin = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  const close = async (): Promise<void> => {
    const closed = new Promise((resolve) => server.close(resolve))
    server.closeAllConnections()
    await closed
  }
  const http: HttpServer = {
    url: `${origin}/mcp`,
    origin,
    seen,
    sessions,
    intercept: () => false,
    close,
    [Symbol.asyncDispose]: close,
  }
  return http

  async function serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const chunks: Buffer[] = []
    for await (const chunk of request) chunks.push(chunk as Buffer)
    const text = Buffer.concat(chunks).toString()
    const isRpc = text.startsWith('{') && request.url === '/mcp'
    const message = isRpc ? (JSON.parse(text) as Rpc) : undefined
    seen.push({
      method: request.method ?? '',
      rpc: message?.method,
      headers: request.headers,
    })
    if (http.intercept(request, response, message, text)) return
    if (request.method === 'DELETE') {
      sessions.delete(String(request.headers['mcp-session-id']))
      response.writeHead(200).end()
      return
    }
    if (request.method !== 'POST' || message === undefined) {
      response.writeHead(405).end()
      return
    }
    if (message.method === 'initialize') {
      const session = randomUUID()
      sessions.add(session)
      const capabilities = { tools: {} }
      const serverInfo = { name: 'http', version: '1' }
      const { protocolVersion } = message.params ?? {}
      json(response, message.id, { protocolVersion, capabilities, serverInfo }, { 'mcp-session-id': session })
    } else if (!sessions.has(String(request.headers['mcp-session-id']))) {
      response.writeHead(request.headers['mcp-session-id'] === undefined ? 400 : 404).end()
    } else if (message.id === undefined) response.writeHead(202).end()
    else if (message.method === 'tools/list') json(response, message.id, { tools: TOOLS })
    else
      json(response, message.id, {
        content: [{ type: 'text', text: `called ${message.params?.name ?? ''}` }],
      })
  }
}

const TOOLS = [
  { name: 'look', description: 'Looks.', inputSchema: { type: 'object', properties: {} } },
  { name: 'other', description: 'Another.', inputSchema: { type: 'object', properties: {} } },
]

export function json(
  response: ServerResponse,
  id: number | undefined,
  result: object,
  headers: Record<string, string> = {},
): void {
  response
    .writeHead(200, { 'content-type': 'application/json', ...headers })
    .end(JSON.stringify({ jsonrpc: '2.0', id, result }))
}
