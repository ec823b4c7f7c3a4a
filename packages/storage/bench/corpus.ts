/** Messages to search in, of people who write by Zipf's law, and what is searched for. */
import { makeMeta } from '@sandlot/shared/chat/event-meta'
import type { SessionEvent } from '@sandlot/shared/chat/events'
import { randomFrom } from '../../../test/campaign.ts'
import type { SessionStore } from '../src/sessions/store.ts'

const PEOPLE = 20
const PER_CHAT = 250
/** Chats that are filled at once: a PostgreSQL server writes them concurrently. */
const TOGETHER = 4
const VOCABULARY = 30_000
const WORDS_PER_MESSAGE = 30
const LETTERS = 'etaoinshrdlucmfwypvbgkjqxz'
const BEGAN_AT = 1_700_000_000_000
const BETWEEN_MS = 5_000

export interface Corpus {
  /** The first chat of those that were filled. */
  readonly firstChat: string
  message(): SessionEvent
  /** Chats of so many messages in all. */
  fill(store: SessionStore, messages: number): Promise<void>
  /** One of those who have the chats. */
  person(): string
  /** Words of the next kind of search. */
  search(): string
}

/** The same for the same seed. */
export function makeCorpus(seed = 'search'): Corpus {
  const random = randomFrom(seed)
  const below = (count: number): number => Math.floor(random() * count)
  const word = (): string =>
    Array.from({ length: 2 + below(8) }, () => LETTERS[Math.floor(random() ** 2 * 26)]).join('')
  const vocabulary = Array.from({ length: VOCABULARY }, word)
  const rank = (n: number): string => vocabulary[n] ?? ''
  /** The n-th word is 1/n as frequent as the first. */
  const drawn = (): string => rank(Math.floor(VOCABULARY ** random()) - 1)
  let at = BEGAN_AT
  const message = (): SessionEvent => ({
    sessionUpdate: 'user_message_chunk',
    messageId: `m_${(at += BETWEEN_MS)}`,
    content: { type: 'text', text: Array.from({ length: WORDS_PER_MESSAGE }, drawn).join(' ') },
    _meta: makeMeta({}, at),
  })
  const chat = (place: number): string => `s_${place * PER_CHAT}`
  const fillOne = async (store: SessionStore, place: number): Promise<void> => {
    const id = chat(place)
    await store.sessions.create({
      id,
      userId: `person-${place % PEOPLE}`,
      cwd: '/workspace',
      mode: 'manual',
      at,
    })
    await store.log.append(id, Array.from({ length: PER_CHAT }, message))
  }
  let searches = 0
  const kinds = [
    () => rank(5_000 + below(20_000)), // a rare word
    () => rank(below(5)), // a word of every third message
    () => `${rank(below(100))} ${rank(below(100))}`, // two common words
    () => rank(below(VOCABULARY)).slice(0, 3), // three letters
    () => LETTERS[below(26)] ?? '', // one letter
    () => `"${rank(below(30))} ${rank(below(30))}"`, // a phrase
  ]
  return {
    firstChat: chat(0),
    message,
    async fill(store, messages) {
      const chats = Array.from({ length: Math.ceil(messages / PER_CHAT) }, (_, place) => place)
      for (let from = 0; from < chats.length; from += TOGETHER)
        await Promise.all(chats.slice(from, from + TOGETHER).map((place) => fillOne(store, place)))
    },
    person: () => `person-${below(PEOPLE)}`,
    search: () => kinds[searches++ % kinds.length]?.() ?? '',
  }
}
