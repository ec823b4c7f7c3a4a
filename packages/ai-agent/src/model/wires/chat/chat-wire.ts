/** Chat Completions, which nearly every provider and local server speaks. */
import type { Wire } from '../wire.ts'
import { AnswerAssembler } from './answer.ts'
import { learn, requestBody } from './body.ts'

export const chatWire: Wire = {
  name: 'chat',
  path: () => '/chat/completions',
  headers: (apiKey) => ({ authorization: `Bearer ${apiKey}` }),
  body: requestBody,
  reader: (onPiece, profile) => new AnswerAssembler(onPiece, profile),
  learn,
}
