/** Answers of the routes about shared chats that need more than a share (`shares.ts`). */
import { z } from 'zod'
import { sessionEvent } from './events.ts'
import { author, snapshot } from './shares.ts'

/** People and teams of one `GET /api/people?query=`. */
export const MAX_FOUND = 20

/**
 * `GET /api/people?query=`: with whom one may share, by their names. `email`: only where two have
 * the same name.
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
 * `GET /api/snapshots/:id?after=0`: in pages; `next` is `after` of the next one, null on the last.
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
