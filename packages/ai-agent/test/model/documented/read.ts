/** Reads a documented answer as its wire does. */
import type { WireName } from '@sandlot/shared/account/models-api'
import { ModelError } from '../../../src/model/model.ts'
import { profileFor } from '../../../src/model/profiles.ts'
import { anthropicWire } from '../../../src/model/wires/anthropic/anthropic-wire.ts'
import { chatWire } from '../../../src/model/wires/chat/chat-wire.ts'
import { responsesWire } from '../../../src/model/wires/responses/responses-wire.ts'
import type { Wire } from '../../../src/model/wires/wire.ts'
import { readPieces } from '../read-stream.ts'
import type { DocumentedAnswer } from './answer.ts'

const WIRES: Record<WireName, Wire> = {
  chat: chatWire,
  responses: responsesWire,
  anthropic: anthropicWire,
}

/** The answer, or what the error says; both where what was shown is not what the answer says. */
export async function readDocumented(
  { baseUrl, model, wire = 'chat' }: DocumentedAnswer,
  pieces: readonly (Uint8Array | string)[],
): Promise<unknown> {
  try {
    const profile = profileFor(new URL(baseUrl), model, {}, wire)
    const { answer, chunks } = await readPieces(pieces, profile, WIRES[wire])
    const shown = (type: string): string =>
      chunks.map((chunk) => (chunk.type === type && 'text' in chunk ? chunk.text : '')).join('')
    return shown('text') === answer.text && shown('thought') === answer.thought
      ? answer
      : { shown: chunks, answer }
  } catch (error) {
    if (!(error instanceof ModelError)) throw error
    return { class: error.class, retryable: error.retryable, waitMs: error.waitMs, message: error.message }
  }
}
