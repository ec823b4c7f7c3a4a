import { type ClientRequest, type IncomingMessage, request as httpRequest } from 'node:http'
import type { Socket } from 'node:net'
import type { Duplex } from 'node:stream'

import { readBody } from './body.ts'
import type { ConnectionClock } from './clock.ts'
import type { EgressCredential } from './policy.ts'
import { readChunk, writeChunk } from './reading.ts'
import { EgressRefused } from './refusal.ts'
import type { Meter } from './relay.ts'
import type { ProxyRequest } from './request.ts'

/** Headers of an answer that are addressed to the proxy. */
const NOT_PASSED_ON: ReadonlySet<string> = new Set([
  'connection',
  'keep-alive',
  'proxy-authenticate',
  'proxy-connection',
  'te',
  'trailer',
  'transfer-encoding',
  'upgrade',
])

/** Methods that usually have no body: Node announces none for them. */
const BODILESS: ReadonlySet<string> = new Set(['GET', 'HEAD', 'DELETE', 'OPTIONS'])

interface Forwarding {
  client: Duplex
  request: ProxyRequest
  socket: Socket
  credential: Required<EgressCredential> | undefined
  meter: Meter
  clock: ConnectionClock
  /** Called before the first byte of the answer is sent: no other answer is possible afterwards. */
  onAnswer: () => void
}

/**
 * Rewrites and sends one HTTP request, and passes its answer back. One per connection, which ends
 * with the answer.
 */
export async function forward(job: Forwarding): Promise<void> {
  const { client, request, socket, clock } = job
  clock.passing()
  const sent = httpRequest({
    method: request.method,
    path: request.path,
    headers: requestHeaders(job),
    setHost: false,
    maxHeaderSize: 64 * 1024,
    createConnection: () => socket,
  })
  sent.on('error', () => {})
  const stop = (): void => void sent.destroy()
  clock.signal.addEventListener('abort', stop, { once: true })
  // Detects a program that disconnects even without a pending read.
  client.once('close', stop)
  const answered = answerOf(sent, clock.signal)
  answered.catch(() => {})
  sendBody(sent, job).catch((error: unknown) => {
    sent.destroy(error instanceof Error ? error : undefined)
  })
  try {
    await passAnswer(await answered, job)
  } finally {
    client.off('close', stop)
    clock.signal.removeEventListener('abort', stop)
    sent.destroy()
  }
}

function requestHeaders({ request, credential }: Forwarding): string[] {
  const { host, port } = request.authority
  const headers = ['Host', port === 80 ? host : `${host}:${port}`]
  for (const { name, value } of request.headers)
    if (name.toLowerCase() !== credential?.header) headers.push(name, value)
  if (credential) headers.push(credential.header, credential.value)
  if (request.body.kind === 'length') headers.push('Content-Length', String(request.body.bytes))
  if (request.body.kind === 'chunked') headers.push('Transfer-Encoding', 'chunked')
  // Node would announce chunks, which not every server takes.
  if (request.body.kind === 'none' && !BODILESS.has(request.method)) headers.push('Content-Length', '0')
  headers.push('Connection', 'close')
  return headers
}

async function sendBody(sent: ClientRequest, { client, request, meter, clock }: Forwarding): Promise<void> {
  if (request.expectsContinue && request.body.kind !== 'none')
    await writeChunk(client, 'HTTP/1.1 100 Continue\r\n\r\n', clock.signal)
  for await (const chunk of readBody(client, request.body, clock.signal)) {
    meter.up(chunk.length)
    clock.touch()
    await writeChunk(sent, chunk, clock.signal)
  }
  sent.end()
}

function answerOf(sent: ClientRequest, signal: AbortSignal): Promise<IncomingMessage> {
  return new Promise((resolve, reject) => {
    sent.once('response', resolve)
    // 101: the bytes after it are not HTTP. Nothing requested it, because Upgrade is not forwarded.
    sent.once('upgrade', (_answer, socket) => {
      socket.destroy()
      reject(new EgressRefused('bad_answer', 'the server changed to another protocol.'))
    })
    sent.once('error', (cause) =>
      reject(
        cause instanceof EgressRefused || signal.aborted
          ? (signal.reason ?? cause)
          : new EgressRefused('bad_answer', 'the server did not answer in HTTP.', { cause }),
      ),
    )
    sent.once('close', () => reject(signal.reason ?? new EgressRefused('broken', 'the connection broke.')))
  })
}

async function passAnswer(answer: IncomingMessage, job: Forwarding): Promise<void> {
  const { client, request, meter, clock } = job
  answer.on('error', () => {})
  const status = answer.statusCode ?? 502
  const bodiless = request.method === 'HEAD' || status === 204 || status === 304
  const chunked = !bodiless && answer.headers['content-length'] === undefined && request.minor === 1
  job.onAnswer()
  await writeChunk(client, Buffer.from(answerHead(answer, status, chunked), 'latin1'), clock.signal)
  for (;;) {
    const chunk = await readChunk(answer, clock.signal)
    if (!chunk) break
    meter.down(chunk.length)
    clock.touch()
    if (chunked) await writeChunk(client, `${chunk.length.toString(16)}\r\n`, clock.signal)
    await writeChunk(client, chunk, clock.signal)
    if (chunked) await writeChunk(client, '\r\n', clock.signal)
  }
  if (!answer.complete) throw new EgressRefused('broken', 'the server closed the connection too early.')
  if (chunked) await writeChunk(client, '0\r\n\r\n', clock.signal)
}

function answerHead(answer: IncomingMessage, status: number, chunked: boolean): string {
  const words = (answer.statusMessage ?? '').replace(/[^\t\x20-\x7e]/g, '')
  const lines = [`HTTP/1.1 ${status} ${words}`]
  const raw = answer.rawHeaders
  for (let at = 0; at + 1 < raw.length; at += 2) {
    const name = raw[at] ?? ''
    if (!NOT_PASSED_ON.has(name.toLowerCase())) lines.push(`${name}: ${raw[at + 1] ?? ''}`)
  }
  if (chunked) lines.push('Transfer-Encoding: chunked')
  lines.push('Connection: close', '', '')
  return lines.join('\r\n')
}
