/**
 * The model of the bench: a process of its own that plays streams, and says when each byte of them went. The
 * clock is the machine's own, which all processes share.
 *
 * `POST /v1/chat/completions`, `/v1/responses`, `/v1/messages`: the request's model names the stream, its key whose request it is.
 * `GET /marks/<whose>`: what was noted since the last time.
 */
import { type IncomingMessage, type ServerResponse, createServer } from 'node:http'
import { text } from 'node:stream/consumers'
import { setImmediate as turn, setTimeout as sleep } from 'node:timers/promises'
import { nowMs } from '../../../test/bench/measure.ts'
import { announce, startProgram } from '../../../test/bench/program.ts'
import { treeOf } from '../../sandbox/test/support/process-tree.ts'
import { WIRE_ANSWERS, type WireAnswers } from '../test/support/wire-answers.ts'

/** One request, in milliseconds of the machine's clock. */
export interface Mark {
  /** Its first byte had come. */
  askedAt: number
  /** Before the first piece of the answer's text or arguments was written. */
  firstAt: number
  /** Before the last byte of the answer was written; of `endless`, when the one who asked had hung up. */
  lastAt: number
}

/** Milliseconds before the first token of `slow-text`. */
export const FIRST_TOKEN_MS = 200

interface Delta {
  content?: string | null
  tool_calls?: { id?: string; function: { name?: string; arguments: string } }[]
}

interface Stream {
  /** Milliseconds before the first delta. */
  waitMs?: number
  deltas: Delta[]
  finish: 'stop' | 'tool_calls'
}

/** Milliseconds between two words of `endless`. */
const WORD_MS = 5

/** The shell's argument, by stream. `touch` changes something, so it asks for approval. */
function commandOf(name: string): string | undefined {
  if (name === 'touch') return 'touch here'
  const mark = /^tree-(\d+)$/.exec(name)?.[1]
  return mark === undefined ? undefined : treeOf(Number(mark))
}

/**
 * `call`: one call, then an answer. `arguments-<kB>`: a call with so much in pieces of 100 bytes. `slow-text`: only text. `tree-<mark>`,
 * `touch`: a call of the shell. `endless`: text until the one who asked hangs up.
 */
function streamOf(name: string, results: number): Stream {
  if (name === 'slow-text') return { waitMs: FIRST_TOKEN_MS, deltas: textDeltas(60), finish: 'stop' }
  if (results > 0) return { deltas: textDeltas(12), finish: 'stop' }
  const command = commandOf(name)
  if (command !== undefined)
    return { deltas: callDeltas(JSON.stringify({ command }), 12, 'run_shell_command'), finish: 'tool_calls' }
  const kilobytes = Number(/^arguments-(\d+)$/.exec(name)?.[1] ?? 0)
  const said = kilobytes === 0 ? 'a short text to be said again' : numbers(kilobytes * 1_000 - 12)
  return {
    deltas: callDeltas(JSON.stringify({ text: said }), kilobytes === 0 ? 12 : 100),
    finish: 'tool_calls',
  }
}

function textDeltas(count: number): Delta[] {
  const begin = { role: 'assistant', content: '' }
  const words = Array.from({ length: count }, (_, index) => ({ content: `word${index} ` }))
  return [begin, ...words]
}

function callDeltas(args: string, size: number, name = 'echo'): Delta[] {
  const begin = { index: 0, id: 'call_1', type: 'function', function: { name, arguments: '' } }
  const first = { role: 'assistant', content: null, tool_calls: [begin] }
  const pieces: Delta[] = [first]
  for (let at = 0; at < args.length; at += size) {
    const piece = { index: 0, function: { arguments: args.slice(at, at + size) } }
    pieces.push({ tool_calls: [piece] })
  }
  return pieces
}

/** Writes, one each a delta and at last the end of the answer. */
function writesOf(wire: WireAnswers, { deltas, finish }: Stream): string[] {
  if (wire === WIRE_ANSWERS.chat)
    return [...deltas.map((delta) => chunk(delta, null)), chunk({}, finish), 'data: [DONE]\n\n']
  const functions = deltas.flatMap(({ tool_calls }) => tool_calls?.map((call) => call.function) ?? [])
  const args = functions.map((one) => one.arguments).join('')
  const calls = functions.length === 0 ? [] : [{ id: 'call_1', name: functions[0]?.name ?? '', args }]
  const text = deltas.map(({ content }) => content ?? '').join('')
  return wire.events({ text, calls }, Math.ceil((text.length + args.length) / deltas.length))
}

/** Text that never repeats itself. */
function numbers(length: number): string {
  let said = ''
  for (let n = 0; said.length < length; n++) said += `${n} `
  return said.slice(0, length)
}

async function serve(): Promise<void> {
  const marks = new Map<string, Mark[]>()
  const server = createServer((request, response) => {
    answer(request, response, marks).catch((error: unknown) => response.destroy(error as Error))
  })
  server.keepAliveTimeout = 60_000
  await announce(server)
}

async function answer(
  request: IncomingMessage,
  response: ServerResponse,
  marks: Map<string, Mark[]>,
): Promise<void> {
  const askedAt = nowMs()
  if (request.method === 'GET') {
    const whose = request.url?.split('/').at(-1) ?? ''
    response.end(JSON.stringify(marks.get(whose) ?? []))
    marks.delete(whose)
    return
  }
  const body = JSON.parse(await text(request)) as { model: string }
  const wire =
    Object.values(WIRE_ANSWERS).find(({ path }) => request.url === `/v1${path}`) ?? WIRE_ANSWERS.chat
  const messages = wire.messages(body)
  const asked = messages.findLastIndex(({ role }) => role === 'user')
  const results = messages.slice(asked).filter(({ role }) => role === 'tool').length
  const stream = streamOf(body.model, results)
  const writes = writesOf(wire, stream)
  response.writeHead(200, { 'content-type': 'text/event-stream' })
  response.flushHeaders()
  const whose = request.headers.authorization?.replace('Bearer ', '') ?? String(request.headers['x-api-key'])
  const note = (mark: Mark): void => void marks.set(whose, [...(marks.get(whose) ?? []), mark])
  if (stream.waitMs !== undefined) await sleep(stream.waitMs)
  const firstAt = nowMs()
  if (body.model === 'endless') {
    response.once('close', () => note({ askedAt, firstAt, lastAt: nowMs() }))
    const events = wire.events({ text: 'word' }, 4)
    const first = events.findIndex((event) => event.includes('"word"'))
    response.write(events.slice(0, first).join(''))
    for (let word = 0; !response.destroyed; word++) {
      response.write(events[first]?.replace('"word"', `"word${word} "`))
      await sleep(WORD_MS)
    }
    return
  }
  const last = writes.pop()
  for (const [index, write] of writes.entries()) {
    response.write(write)
    // In parts, as over a network.
    if (index % 50 === 49) await turn()
  }
  const lastAt = nowMs()
  note({ askedAt, firstAt, lastAt })
  response.end(last)
}

function chunk(delta: unknown, finish_reason: string | null): string {
  const usage =
    finish_reason === null ? {} : { usage: { prompt_tokens: 50, completion_tokens: 10, total_tokens: 60 } }
  const choices = [{ index: 0, delta, finish_reason }]
  const whole = {
    id: 'chatcmpl-1',
    object: 'chat.completion.chunk',
    created: 1_790_000_000,
    model: 'bench',
    choices,
    ...usage,
  }
  return `data: ${JSON.stringify(whole)}\n\n`
}

export interface Player extends AsyncDisposable {
  /** Ends in `/v1`. */
  baseUrl: string
  /** Marks of these requests since the last call. */
  marks(whose: string): Promise<Mark[]>
}

/** Start the process and wait until it listens. */
export async function startPlayer(): Promise<Player> {
  const program = await startProgram(new URL(import.meta.url))
  return {
    ...program,
    baseUrl: `${program.origin}/v1`,
    marks: async (whose) => (await (await fetch(`${program.origin}/marks/${whose}`)).json()) as Mark[],
  }
}

if (import.meta.main) await serve()
