/**
 * A real HTTP server that plays documented answers: each request takes the next answer of the list,
 * the last one stays.
 */
import { once } from 'node:events'
import { type IncomingMessage, type Server, createServer } from 'node:http'
import type { AddressInfo } from 'node:net'

export interface PlayedAnswer {
  status?: number
  headers?: Record<string, string>
  /** An object is sent as JSON, a string as HTML. */
  body?: object | string
  /** Never answered. */
  hang?: true
}

export interface SeenRequest {
  method: string
  /** Path with its query. */
  url: string
  headers: IncomingMessage['headers']
  body: string
  /** Resolves when the client has gone before it was answered. */
  abandoned: Promise<void>
}

export interface PlayingServer {
  url: string
  seen: SeenRequest[]
  /** Sets the next answers. */
  play(...answers: PlayedAnswer[]): void
  close(): Promise<void>
}

export async function playingServer(): Promise<PlayingServer> {
  let answers: PlayedAnswer[] = []
  const seen: SeenRequest[] = []
  const server: Server = createServer((request, response) => {
    void (async () => {
      let body = ''
      const abandoned = once(response, 'close').then(() => undefined)
      for await (const piece of request) body += String(piece)
      seen.push({
        method: request.method ?? '',
        url: request.url ?? '',
        headers: request.headers,
        body,
        abandoned,
      })
      const answer = (answers.length > 1 ? answers.shift() : answers[0]) ?? { status: 500, body: 'no answer' }
      if (answer.hang === true) return
      const json = typeof answer.body === 'object'
      response.writeHead(answer.status ?? 200, {
        'content-type': json ? 'application/json; charset=utf-8' : 'text/html',
        ...answer.headers,
      })
      response.end(typeof answer.body === 'string' ? answer.body : JSON.stringify(answer.body))
    })()
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  return {
    url: `http://127.0.0.1:${port}`,
    seen,
    play: (...next) => {
      answers = next
    },
    close: async () => {
      const closed = once(server, 'close')
      server.close()
      server.closeAllConnections()
      await closed
    },
  }
}
