/**
 * A model provider for tests: a real HTTP server that plays a script of Chat Completions answers, byte for
 * byte, and records what it was asked. Standalone (Node only). When its script runs out it answers 400 with a message
 * that says so, and `close()` rejects.
 *
 *     const provider = await startFakeProvider([
 *       toolCalls([{ id: 'c1', name: 'echo', args: { text: 'hi' } }]),
 *       textAnswer('It said hi.'),
 *     ])
 *     // … point a client at provider.baseUrl …
 *     provider.requests[1]?.body.messages
 *     await provider.close()
 */
import { createServer } from 'node:http'
import type { IncomingMessage, ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { text } from 'node:stream/consumers'
import { setTimeout as sleep } from 'node:timers/promises'

/** Bytes to write, or a pause in milliseconds. */
export type Step = string | Uint8Array | { delayMs: number }

export interface FakeAnswer {
  /** Default 200. */
  status?: number
  /** Default: `content-type: text/event-stream`. */
  headers?: Record<string, string>
  steps: readonly Step[]
  /**
   * After the steps: `end` (default) closes the answer properly, `destroy` cuts the connection, `hang` leaves it open
   * until the client goes away.
   */
  after?: 'end' | 'destroy' | 'hang'
}

/** The client's request. */
export interface RecordedRequest {
  path: string
  headers: Record<string, string | string[] | undefined>
  /** The body as it came, for byte comparisons. */
  raw: string
  body: RecordedBody
  /** True once the client has closed the connection before the answer was complete. */
  aborted: boolean
}

export interface RecordedBody {
  model?: string
  stream?: boolean
  messages: {
    role: string
    content?: unknown
    tool_calls?: unknown
    tool_call_id?: string
    [key: string]: unknown
  }[]
  tools?: unknown[]
  [key: string]: unknown
}

export type Scripted = FakeAnswer | ((request: RecordedRequest) => FakeAnswer | Promise<FakeAnswer>)

export interface FakeProvider {
  /** For `OPENAI_BASE_URL`, ends in `/v1`. */
  readonly baseUrl: string
  /** In the order in which they came. */
  readonly requests: readonly RecordedRequest[]
  /** Requests for a chat's name, which take no answer of the script. */
  readonly titleRequests: readonly RecordedRequest[]
  /** Answers to these; without one the model says nothing. */
  readonly titles: Scripted[]
  /** JSON bodies of GET requests by path; every other path is 404. */
  readonly pages: Map<string, unknown>
  /** Answers that were not asked for yet. */
  readonly remaining: number
  /** Adds to the end of the script. */
  add(...answers: Scripted[]): void
  /** Ends every connection. Rejects if the script ran out or a request could not be read. */
  close(): Promise<void>
}

/** `host`: the address of this machine on which it listens; agents elsewhere need one that leads here. */
export async function startFakeProvider(
  script: readonly Scripted[] = [],
  host = '127.0.0.1',
): Promise<FakeProvider> {
  const answers = [...script]
  const requests: RecordedRequest[] = []
  const titleRequests: RecordedRequest[] = []
  const titles: Scripted[] = []
  const pages = new Map<string, unknown>()
  const problems: string[] = []

  const server = createServer((incoming, outgoing) => {
    respond(incoming, outgoing).catch((error: unknown) => {
      problems.push(String(error))
      outgoing.destroy()
    })
  })

  async function respond(incoming: IncomingMessage, outgoing: ServerResponse): Promise<void> {
    if (incoming.method === 'GET') {
      const page = pages.get(incoming.url ?? '')
      // Many providers have no list of models.
      if (page === undefined) return void outgoing.writeHead(404).end()
      return void outgoing.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify(page))
    }
    const raw = await text(incoming)
    const request: RecordedRequest = {
      path: incoming.url ?? '',
      headers: incoming.headers,
      raw,
      body: JSON.parse(raw) as RecordedBody,
      aborted: false,
    }
    // In whatever member this API has the instructions.
    const isTitle = raw.includes('"Name this chat.')
    if (isTitle) titleRequests.push(request)
    else requests.push(request)
    outgoing.on('close', () => {
      request.aborted = !outgoing.writableFinished
    })
    const next = isTitle ? (titles.shift() ?? textAnswer('', { usage: null })) : answers.shift()
    if (next === undefined) {
      const problem = `The fake provider's script ran out: nobody expected request ${requests.length}.`
      problems.push(problem)
      await play(errorAnswer(400, { error: { message: problem, type: 'invalid_request_error' } }), outgoing)
      return
    }
    await play(typeof next === 'function' ? await next(request) : next, outgoing)
  }

  await new Promise<void>((resolve) => {
    server.listen(0, host, resolve)
  })
  const { port } = server.address() as AddressInfo
  return {
    baseUrl: `http://${host}:${port}/v1`,
    requests,
    titleRequests,
    titles,
    pages,
    get remaining() {
      return answers.length
    },
    add: (...more) => void answers.push(...more),
    close: async () => {
      server.closeAllConnections()
      await new Promise((resolve) => {
        server.close(resolve)
      })
      if (problems.length > 0) throw new Error(problems.join('\n'))
    },
  }
}

async function play(answer: FakeAnswer, outgoing: ServerResponse): Promise<void> {
  outgoing.writeHead(answer.status ?? 200, answer.headers ?? { 'content-type': 'text/event-stream' })
  outgoing.flushHeaders()
  for (const step of answer.steps) {
    if (outgoing.destroyed) return
    if (typeof step === 'object' && 'delayMs' in step) {
      await sleep(step.delayMs)
    } else {
      outgoing.write(step)
      // One write, one chunk on the wire: without a turn of the loop, Node would send them together.
      await new Promise((resolve) => {
        setImmediate(resolve)
      })
    }
  }
  if (answer.after === 'destroy') outgoing.destroy()
  else if (answer.after !== 'hang') outgoing.end()
}

// ── Answers ─────────────────────────────────────────────────────────────────────────────────────────────

export interface FakeUsage {
  prompt_tokens?: number
  completion_tokens?: number
  [key: string]: unknown
}

export interface AnswerOptions {
  /** Characters per delta of text and of arguments. Default 12. */
  pieceLength?: number
  /** Milliseconds between deltas. Default 0. */
  delayMs?: number
  /** Bytes per write on the wire, cutting through events and characters. Default: one event per write. */
  writeBytes?: number
  /** Default: 10 in, 5 out. Null: none is sent. */
  usage?: FakeUsage | null
  /** Default `stop` or `tool_calls`. */
  finish?: string
  /** Sent as `reasoning_content` before the rest. */
  reasoning?: string
}

/** A call that the model makes. `args` may be text, sent as it is, to make a mistake. */
export interface FakeCall {
  id: string
  name: string
  args: Record<string, unknown> | string
}

/** An answer in words. */
export function textAnswer(content: string, options: AnswerOptions = {}): FakeAnswer {
  return answerOf(content, [], options)
}

/** An answer with calls, with `text` before them. */
export function toolCalls(
  calls: readonly FakeCall[],
  options: AnswerOptions & { text?: string } = {},
): FakeAnswer {
  return answerOf(options.text ?? '', calls, options)
}

/** Any status with a body, JSON unless it is text. */
export function errorAnswer(status: number, body: unknown, headers: Record<string, string> = {}): FakeAnswer {
  const isText = typeof body === 'string'
  return {
    status,
    headers: { 'content-type': isText ? 'text/plain' : 'application/json', ...headers },
    steps: [isText ? body : JSON.stringify(body)],
  }
}

/** One SSE event with this chunk. */
export function sse(chunk: unknown): string {
  return `data: ${typeof chunk === 'string' ? chunk : JSON.stringify(chunk)}\n\n`
}

/** The chunk that carries one delta. */
export function deltaChunk(delta: unknown, finish: string | null = null): Record<string, unknown> {
  return {
    id: 'chatcmpl-fake',
    object: 'chat.completion.chunk',
    created: 1_790_000_000,
    model: 'fake',
    choices: [{ index: 0, delta, finish_reason: finish }],
  }
}

function answerOf(content: string, calls: readonly FakeCall[], options: AnswerOptions): FakeAnswer {
  const size = options.pieceLength ?? 12
  const deltas: unknown[] = [{ role: 'assistant', content: '' }]
  for (const piece of cut(options.reasoning ?? '', size)) deltas.push({ reasoning_content: piece })
  for (const piece of cut(content, size)) deltas.push({ content: piece })
  for (const [index, call] of calls.entries()) {
    const args = typeof call.args === 'string' ? call.args : JSON.stringify(call.args)
    deltas.push({
      tool_calls: [{ index, id: call.id, type: 'function', function: { name: call.name, arguments: '' } }],
    })
    for (const piece of cut(args, size))
      deltas.push({ tool_calls: [{ index, function: { arguments: piece } }] })
  }
  const finish = options.finish ?? (calls.length > 0 ? 'tool_calls' : 'stop')
  const usage =
    options.usage === undefined
      ? { prompt_tokens: 10, completion_tokens: 5, total_tokens: 15 }
      : options.usage
  const events = [
    ...deltas.map((delta) => sse(deltaChunk(delta))),
    sse(deltaChunk({}, finish)),
    ...(usage === null ? [] : [sse({ ...deltaChunk({}), choices: [], usage })]),
    sse('[DONE]'),
  ]
  const writes = options.writeBytes === undefined ? events : cutBytes(events.join(''), options.writeBytes)
  const delayMs = options.delayMs ?? 0
  return { steps: delayMs === 0 ? writes : writes.flatMap((write) => [write, { delayMs }]) }
}

/** Pieces of `size` characters; never half a surrogate pair, which JSON could not carry. */
function cut(whole: string, size: number): string[] {
  const characters = Array.from(whole)
  const pieces: string[] = []
  for (let at = 0; at < characters.length; at += size) pieces.push(characters.slice(at, at + size).join(''))
  return pieces
}

/** Pieces of `size` bytes, also inside a character. */
export function cutBytes(whole: string, size: number): Uint8Array[] {
  const bytes = new TextEncoder().encode(whole)
  const pieces: Uint8Array[] = []
  for (let at = 0; at < bytes.length; at += size) pieces.push(bytes.subarray(at, at + size))
  return pieces
}
