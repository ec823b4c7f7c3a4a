/** Responses of the routes for shared chats (see `shares.ts`). */
import { z } from 'zod'
import { sessionEvent } from './events.ts'
import { author, snapshot } from './shares.ts'

/** Users and teams in one `GET /api/people?query=`. */
export const MAX_FOUND = 20

/**
 * `GET /api/people?query=`: possible targets of a share, by name. `email`: only if two have the
 * same name.
 */
export const directory = z.object({
  people: z.array(
    z.object({
      id: z.string(),
      name: z.string(),
      guest: z.literal(true).optional(),
      email: z.string().optional(),
    }),
  ),
  teams: z.array(z.object({ id: z.string(), name: z.string() })),
})
export type Directory = z.infer<typeof directory>

/**
 * `GET /api/snapshots/:id?after=0`: paginated; `next` is `after` of the next page, null on the
 * last.
 */
export const snapshotView = snapshot
  .pick({ upTo: true, outputs: true, createdAt: true, expiresAt: true })
  .extend({
    title: z.string().nullable(),
    owner: author,
    events: z.array(sessionEvent),
    next: z.number().nullable(),
  })
export type SnapshotView = z.infer<typeof snapshotView>
