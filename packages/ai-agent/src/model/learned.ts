/** What an endpoint turns out not to take, by the words with which it refuses a request. Kept once a request without it is taken. */
import { isObject } from './json.ts'
import type { JsonObject } from './json.ts'
import type { Profile } from './profiles.ts'
import type { WireOptions } from './wire.ts'

export type Learned = Pick<WireOptions, 'maxTokensName' | 'includeUsage' | 'emptyContent'>

/** What to send next, after `words` refused `body`. Undefined when they name nothing that can be sent otherwise. */
export function learnFrom(
  words: string,
  sent: Learned,
  profile: Profile,
  body: JsonObject,
): Learned | undefined {
  if (sent.includeUsage && /stream_options|include_usage/.test(words)) return { ...sent, includeUsage: false }
  const { maxTokensName } = sent
  if (maxTokensName === profile.maxTokensName && wantsOtherName(words, maxTokensName)) {
    const other = maxTokensName === 'max_tokens' ? 'max_completion_tokens' : 'max_tokens'
    return { ...sent, maxTokensName: other }
  }
  const refusesNull = /content/i.test(words) && /\bnull\b|\bnone\b|string/i.test(words)
  if (sent.emptyContent === undefined && refusesNull && sendsNull(body)) return { ...sent, emptyContent: '' }
  return undefined
}

const UNKNOWN = /unrecogni[sz]ed|unknown|unsupported|not (?:supported|permitted|allowed)|extra_forbidden/i

function wantsOtherName(words: string, name: WireOptions['maxTokensName']): boolean {
  // Who knows the newer name mentions it; who does not must say so, for its value may be wrong too.
  return /max_completion_tokens/.test(words) && (name === 'max_tokens' || UNKNOWN.test(words))
}

function sendsNull({ messages }: JsonObject): boolean {
  return (
    Array.isArray(messages) && messages.some((message) => isObject(message) && message['content'] === null)
  )
}
