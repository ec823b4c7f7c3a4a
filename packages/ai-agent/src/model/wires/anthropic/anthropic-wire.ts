/** Messages, the API of Anthropic, which many other providers and servers speak as well. */
import { member } from '../../json.ts'
import type { Wire } from '../wire.ts'
import { MessageReader } from './answer.ts'
import { requestBody } from './body.ts'
import { learn } from './tuning.ts'

/** They take one header with a key, and refuse what else looks like one. */
const ONE_KEY = /(?:^|\.)(?:anthropic\.com|azure\.com)$/

export const anthropicWire: Wire = {
  name: 'anthropic',
  // Operators leave out the version, as in `https://api.anthropic.com`, or do not.
  path: ({ pathname }) => {
    if (/\/messages\/?$/.test(pathname)) return ''
    return /\/v\d+\/?$/.test(pathname) ? '/messages' : '/v1/messages'
  },
  // Gateways and local servers read the key where Chat Completions has it.
  headers: (apiKey, { hostname }) => ({
    'x-api-key': apiKey,
    ...(ONE_KEY.test(hostname) ? {} : { authorization: `Bearer ${apiKey}` }),
  }),
  otherHeaders: ({ thinking }, refused) => ({
    'anthropic-version': '2023-06-01',
    // Thought between calls; models that take no budget have it anyway, and some hosts refuse this.
    ...(member(thinking, 'type') === 'enabled' && !refused.has('beta')
      ? { 'anthropic-beta': 'interleaved-thinking-2025-05-14' }
      : {}),
  }),
  body: requestBody,
  reader: (onPiece) => new MessageReader(onPiece),
  learn,
}
