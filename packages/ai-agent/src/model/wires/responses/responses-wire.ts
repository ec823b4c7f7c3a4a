/** The Responses API, without state at the provider: every request holds the conversation. */
import type { Wire } from '../wire.ts'
import { ResponseReader } from './answer.ts'
import { learn, requestBody } from './body.ts'

export const responsesWire: Wire = {
  name: 'responses',
  path: () => '/responses',
  headers: (apiKey) => ({ authorization: `Bearer ${apiKey}` }),
  body: requestBody,
  reader: (onPiece) => new ResponseReader(onPiece),
  learn,
}
