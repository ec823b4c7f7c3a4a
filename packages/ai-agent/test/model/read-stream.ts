/** Reads an answer from bytes, without a network. */
import type { ReadBody } from '../../src/model/http-post.ts'
import { BodyReader } from '../../src/model/sse.ts'
import type { ModelAnswer, ModelChunk } from '../../src/model/model.ts'
import { readAnswer } from '../../src/model/http-model.ts'
import { chatWire } from '../../src/model/wires/chat/chat-wire.ts'
import type { Wire } from '../../src/model/wires/wire.ts'
import { type Profile, DEFAULT_PROFILE } from '../../src/model/profiles.ts'

export const CONTEXT = { model: 'm', baseUrl: 'http://127.0.0.1/v1', apiKey: 'sk-secret-key' }

export interface Read {
  answer: ModelAnswer
  chunks: ModelChunk[]
}

/** The whole answer in these pieces. Rejects with what the reader throws. */
export async function readPieces(
  pieces: readonly (Uint8Array | string)[],
  profile: Profile = DEFAULT_PROFILE,
  wire: Wire = chatWire,
): Promise<Read> {
  const encoder = new TextEncoder()
  const body: ReadBody = async (onBytes) => {
    pieces.some((piece) => onBytes(typeof piece === 'string' ? encoder.encode(piece) : piece))
  }
  const reader = new BodyReader(body, new AbortController(), { idleMs: 10_000, progressMs: 10_000 })
  const chunks: ModelChunk[] = []
  const answer = await readAnswer(
    reader,
    CONTEXT,
    wire.reader((piece) => void chunks.push(piece), profile),
  )
  return { answer, chunks }
}

export const readText = (text: string, profile?: Profile): Promise<Read> => readPieces([text], profile)

/** `data:` events of these chunks, and `[DONE]`. */
export function streamOf(chunks: readonly unknown[], done = true): string {
  return [
    ...chunks.map((chunk) => `data: ${JSON.stringify(chunk)}\n\n`),
    ...(done ? ['data: [DONE]\n\n'] : []),
  ].join('')
}

/** Chunks with these deltas, then one with the finish word unless it is null. */
export function deltas(list: readonly unknown[], finish: string | null = 'tool_calls'): unknown[] {
  const chunk = (delta: unknown, finish_reason: string | null): unknown => ({
    choices: [{ index: 0, delta, finish_reason }],
  })
  return [...list.map((delta) => chunk(delta, null)), ...(finish === null ? [] : [chunk({}, finish)])]
}

/** The calls of an answer whose `tool_calls` deltas are these. */
export async function callsOf(
  elements: readonly unknown[],
  finish = 'tool_calls',
): Promise<ModelAnswer['calls']> {
  const stream = streamOf(
    deltas(
      elements.map((element) => ({ tool_calls: [element] })),
      finish,
    ),
  )
  return (await readText(stream)).answer.calls
}
