/**
 * `POST /api/exec`: one command in the caller's sandbox, without a model. `Accept` chooses the
 * answer: JSON when it has ended, its output as SSE, or the bytes of its output alone with the exit
 * code in a trailer. A client that goes away ends the command and everything that it started.
 */
import { Readable } from 'node:stream'
import {
  type ExecEnd,
  type ExecResponse,
  MAX_EXEC_TEXT_BYTES,
  execRequest,
} from '@sandlot/shared/workspace/exec'
import { SandlotError, toErrorBody } from '@sandlot/shared/base/errors'
import { MAX_FRAME_BYTES } from '@sandlot/shared/chat/frames'
import { bodyLimit } from 'hono/body-limit'
import type { MiddlewareHandler } from 'hono'
import { streamSSE } from 'hono/streaming'
import type { z } from 'zod'
import { agentUserOf } from '../../auth/agent-user.ts'
import { type ExecOutput, runExec } from '../../agent/run-exec.ts'
import { problemsOf } from '../../socket/frame.ts'
import type { AppEnv, Ctx, Parts } from '../context.ts'
import type { Body, Handlers } from '../actions.ts'
import { pacedBody } from '../request.ts'

const HEADER = 'sandlot-exec'
/** Proxies cut streams on which nothing happens. */
const KEEP_ALIVE_MS = 15_000

type Running = AsyncGenerator<'started' | ExecOutput, ExecEnd>

const jsonLimit = bodyLimit({
  maxSize: MAX_FRAME_BYTES,
  onError: () => {
    throw new SandlotError(
      'too_large',
      `The JSON has at most ${MAX_FRAME_BYTES} bytes. Send a longer stdin as the body, and the rest in the header Sandlot-Exec.`,
    )
  },
})
/** Limits a body that is JSON, not one that is stdin. */
export const execLimit: MiddlewareHandler<AppEnv> = (c, next) =>
  c.req.header(HEADER) === undefined ? jsonLimit(c, next) : next()

export function execHandlers(parts: Parts) {
  return {
    runCommand: async (c, body) => {
      const { asked, stdin } = await readExec(c, parts, body)
      const accept = c.req.header('accept') ?? ''
      const raw = accept.includes('application/octet-stream')
      const gone = goneOf(c, parts)
      const { via } = c.var.caller
      const running = runExec({
        agent: parts.agent,
        params: {
          ...asked,
          user: agentUserOf(c.var.caller),
          // Like a chat: a script answers no questions.
          defaultMode: via === 'key' ? 'yolo' : undefined,
          merge: raw,
        },
        stdin,
        gone: gone.signal,
      })
      // A refusal is an ordinary answer.
      await running.next()
      if (raw) return answerAsBytes(c, running, gone)
      return accept.includes('text/event-stream')
        ? answerAsStream(c, running, gone)
        : c.json(await answerAsJson(running, (bytes) => parts.traffic.pass(c.var.caller.account.id, bytes)))
    },
  } satisfies Partial<Handlers>
}

async function readExec(
  c: Ctx,
  parts: Parts,
  body: Body<'runCommand'>,
): Promise<{
  asked: Omit<z.output<typeof execRequest>, 'stdin'>
  stdin: AsyncIterable<Uint8Array> | undefined
}> {
  const header = c.req.header(HEADER)
  if (header === undefined) {
    const { stdin, ...asked } = await body()
    return { asked, stdin: stdin === undefined ? undefined : Readable.from([Buffer.from(stdin)]) }
  }
  const parsed = execRequest.omit({ stdin: true }).safeParse(readHeader(header))
  if (!parsed.success)
    throw new SandlotError('bad_request', `The header Sandlot-Exec does not fit: ${problemsOf(parsed.error)}`)
  return { asked: parsed.data, stdin: pacedBody(c, parts) }
}

function readHeader(header: string): unknown {
  try {
    return JSON.parse(header)
  } catch (error) {
    throw new SandlotError('bad_request', 'The header Sandlot-Exec is not JSON.', { cause: error })
  }
}

/** Aborts when the client has gone, or its sign-in or key has ended. */
function goneOf(c: Ctx, { sockets }: Parts): AbortController {
  const gone = new AbortController()
  const leave = (): void => gone.abort()
  const { caller } = c.var
  const remove = sockets.add({ caller, send: () => undefined, close: leave })
  c.req.raw.signal.addEventListener('abort', leave, { once: true })
  c.env.outgoing.once('close', () => {
    remove()
    leave()
  })
  return gone
}

// ── JSON
// ────────────────────────────────────────────────────────────────────────────────────────────────

async function answerAsJson(
  running: Running,
  /** Also what is left out of the answer was brought here. */
  pass: (bytes: number) => Promise<void>,
): Promise<ExecResponse> {
  const heads = { stdout: new Beginning(), stderr: new Beginning() }
  for (;;) {
    const step = await running.next()
    if (step.done === true) {
      const { stdout, stderr } = heads
      const truncated = stdout.cut || stderr.cut
      return { ...step.value, stdout: stdout.text(), stderr: stderr.text(), truncated }
    }
    if (step.value === 'started') continue
    heads[step.value.stream].push(step.value.data)
    await pass(step.value.data.length)
  }
}

/** The first bytes of a stream. */
class Beginning {
  readonly #pieces: Buffer[] = []
  #left = MAX_EXEC_TEXT_BYTES
  cut = false

  push(data: Buffer): void {
    this.cut ||= data.length > this.#left
    const part = data.subarray(0, this.#left)
    this.#left -= part.length
    if (part.length > 0) this.#pieces.push(part)
  }

  text(): string {
    // A character that the cut falls into is left out.
    return new TextDecoder().decode(Buffer.concat(this.#pieces), { stream: this.cut })
  }
}

// ── SSE
// ─────────────────────────────────────────────────────────────────────────────────────────────────

function answerAsStream(c: Ctx, running: Running, gone: AbortController): Response {
  c.header('x-accel-buffering', 'no')
  return streamSSE(c, async (stream) => {
    stream.onAbort(() => gone.abort())
    const keepAlive = setInterval(() => void stream.write(': still here\n\n'), KEEP_ALIVE_MS)
    const readers = { stdout: new PieceReader(), stderr: new PieceReader() }
    const write = (event: string, data: object): Promise<void> =>
      stream.writeSSE({ event, data: JSON.stringify(data) })
    try {
      for (;;) {
        const step = await running.next()
        if (step.done === true) {
          for (const [name, reader] of Object.entries(readers)) {
            const last = reader.end()
            if (last !== undefined) await write(name, last)
          }
          return await write('ended', step.value)
        }
        if (step.value === 'started') continue
        const piece = readers[step.value.stream].push(step.value.data)
        if (piece !== undefined) await write(step.value.stream, piece)
      }
    } catch (error) {
      await write('error', toErrorBody(error, c.var.requestId))
    } finally {
      clearInterval(keepAlive)
      gone.abort()
    }
  })
}

/** Bytes as JSON: text where they are UTF-8. */
type ExecPiece = { text: string } | { base64: string }

/** Bytes after which a character is not over yet. */
const LONGEST_START = 3

/** One stream, cut anywhere. A character that is cut comes with the piece that completes it. */
class PieceReader {
  #rest = Buffer.alloc(0)

  /** Undefined: not one whole character yet. */
  push(data: Buffer): ExecPiece | undefined {
    const bytes = this.#rest.length === 0 ? data : Buffer.concat([this.#rest, data])
    const whole = bytes.subarray(0, bytes.length - unfinished(bytes))
    // A copy: what was read is not kept by three bytes of it.
    this.#rest = Buffer.from(bytes.subarray(whole.length))
    return whole.length === 0 ? undefined : pieceOf(whole)
  }

  end(): ExecPiece | undefined {
    return this.#rest.length === 0 ? undefined : pieceOf(this.#rest)
  }
}

function pieceOf(bytes: Buffer): ExecPiece {
  const text = bytes.toString('utf8')
  return Buffer.from(text).equals(bytes) ? { text } : { base64: bytes.toString('base64') }
}

/** The number of bytes at the end that begin an incomplete character. */
function unfinished(bytes: Buffer): number {
  for (let back = 1; back <= Math.min(LONGEST_START, bytes.length); back++) {
    const byte = bytes[bytes.length - back] ?? 0
    if (byte < 0x80) return 0
    if (byte < 0xc0) continue
    const length = byte >= 0xf0 ? 4 : byte >= 0xe0 ? 3 : 2
    return length > back ? back : 0
  }
  return 0
}

// ── Bytes
// ───────────────────────────────────────────────────────────────────────────────────────────────

/** Cut off where the agent goes away: the last chunk is missing then. */
function answerAsBytes(c: Ctx, running: Running, gone: AbortController): Response {
  const { outgoing } = c.env
  const body = new ReadableStream<Uint8Array>({
    async pull(controller) {
      for (;;) {
        const step = await running.next()
        if (step.done === true) {
          const { exitCode, signal, reason } = step.value
          outgoing.addTrailers({
            'sandlot-exit-code': exitCode === null ? '' : String(exitCode),
            'sandlot-exit-reason': reason ?? signal ?? '',
          })
          return controller.close()
        }
        if (step.value === 'started') continue
        return controller.enqueue(step.value.data)
      }
    },
    cancel: () => gone.abort(),
  })
  return new Response(body, {
    headers: {
      'content-type': 'application/octet-stream',
      'x-accel-buffering': 'no',
      trailer: 'Sandlot-Exit-Code, Sandlot-Exit-Reason',
    },
  })
}
