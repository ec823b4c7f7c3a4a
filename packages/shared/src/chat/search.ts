/** Search over everything in a person's chats and in those that are shared with them. */
import { z } from 'zod'
import { sessionId } from '../base/ids.ts'
import { author } from './shares.ts'

/**
 * What was found: a chat's name, a message of a person, an answer of the agent, a comment, a call
 * (its title and arguments), or what a call printed.
 */
export const SEARCH_KINDS = ['title', 'message', 'answer', 'comment', 'command', 'output'] as const
const searchKind = z.enum(SEARCH_KINDS)
export type SearchKind = z.infer<typeof searchKind>

/** Characters of a search; more is a paste. */
export const MAX_SEARCH_CHARS = 300

/** `who` of everything that is the agent's. */
export const BY_AGENT = 'agent'

const time = z.coerce.number().int().nonnegative()

/** `GET /api/search?q=…`, newest first; chats' names stand before the rest of the first page. */
export const searchQuery = z.object({
  q: z.string().max(MAX_SEARCH_CHARS).default(''),
  /** Only in this chat. */
  chat: sessionId.optional(),
  /** Only these, with commas between them. */
  kind: z
    .string()
    .transform((kinds) => kinds.split(','))
    .pipe(z.array(searchKind).min(1))
    .optional(),
  /** Only what this person wrote, by id; `agent`: what the agent wrote, ran and printed. */
  who: z.string().min(1).max(128).optional(),
  /** Only in chats of this project of one's own, or that one has archived, or has not. */
  project: z.string().max(64).optional(),
  archived: z
    .enum(['true', 'false'])
    .transform((said) => said === 'true')
    .optional(),
  /** Epoch milliseconds, also of `until`. */
  since: time.optional(),
  until: time.optional(),
  /** The `next` of the page before. */
  before: time.optional(),
  limit: z.coerce.number().int().min(1).max(50).default(20),
})
export type SearchQuery = z.infer<typeof searchQuery>

/** Text around what was found; `match`: this piece is it. */
const snippetPart = z.object({ text: z.string(), match: z.literal(true).optional() })
export type SnippetPart = z.infer<typeof snippetPart>

const searchHit = z.object({
  sessionId,
  /** Of the chat. */
  title: z.string().nullable(),
  kind: searchKind,
  /** Number of the event that it stands in. */
  seq: z.number().int().nonnegative(),
  /** The message, comment or call that it stands in; the chat's id of a title. */
  id: z.string(),
  /** Epoch milliseconds. */
  at: z.number(),
  /** Who wrote it, of messages and comments. */
  by: author.optional(),
  snippet: z.array(snippetPart),
})
export type SearchHit = z.infer<typeof searchHit>

export const searchResult = z.object({
  hits: z.array(searchHit),
  /** Where the next page begins; null on the last one. */
  next: z.number().nullable(),
})
export type SearchResult = z.infer<typeof searchResult>
