/** Search in all of a user's chats and in those shared with them. */
import { z } from 'zod'
import { sessionId } from '../base/ids.ts'
import { author } from '../chat/shares.ts'

/**
 * Kinds of hits: a chat's name, a user's message, an answer of the agent, a comment, a call (its
 * title and arguments), or a call's output.
 */
export const SEARCH_KINDS = ['title', 'message', 'answer', 'comment', 'command', 'output'] as const
const searchKind = z.enum(SEARCH_KINDS)
export type SearchKind = z.infer<typeof searchKind>

/** Characters of a query; more is a paste. */
export const MAX_SEARCH_CHARS = 300

/** `who` of all texts of the agent. */
export const BY_AGENT = 'agent'

const time = z.coerce.number().int().nonnegative()

/** `GET /api/search?q=…`, newest first; chat names come before the rest of the first page. */
export const searchQuery = z.object({
  q: z.string().max(MAX_SEARCH_CHARS).default(''),
  /** Only in this chat. */
  chat: sessionId.optional(),
  /** Comma-separated. */
  kind: z
    .string()
    .transform((kinds) => kinds.split(','))
    .pipe(z.array(searchKind).min(1))
    .optional(),
  /** The author's id; `agent`: messages, calls and outputs of the agent. */
  who: z.string().min(1).max(128).optional(),
  /** Only chats of this project, or archived ones, or others. */
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

/** Text around a hit; `match`: this piece is the hit. */
const snippetPart = z.object({ text: z.string(), match: z.literal(true).optional() })
export type SnippetPart = z.infer<typeof snippetPart>

const searchHit = z.object({
  sessionId,
  /** The chat's. */
  title: z.string().nullable(),
  kind: searchKind,
  /** Number of the event that contains the hit. */
  seq: z.number().int().nonnegative(),
  /** The id of the message, comment or call; of a title the chat's. */
  id: z.string(),
  /** Epoch milliseconds. */
  at: z.number(),
  /** The author of a message or comment. */
  by: author.optional(),
  snippet: z.array(snippetPart),
})
export type SearchHit = z.infer<typeof searchHit>

export const searchResult = z.object({
  hits: z.array(searchHit),
  /** The start of the next page; null on the last one. */
  next: z.number().nullable(),
})
export type SearchResult = z.infer<typeof searchResult>
