/**
 * `/api/snapshots/:id`: what a chat was when its owner made this link, for everybody who is signed
 * in and has it. Nothing later, nothing of people's comments, and without outputs only what was
 * said and what each call was.
 */
import { SandlotError } from '@sandlot/shared/base/errors'
import { isOutcome, seqOf } from '@sandlot/shared/chat/events'
import type { Snapshot } from '@sandlot/shared/chat/shares'
import type { SnapshotView } from '@sandlot/shared/chat/shares-api'
import type { SessionReader } from '@sandlot/storage/sessions/store'
import { z } from 'zod'
import { authorsOf } from '../../auth/agent-user.ts'
import { eventOfSnapshot, withSnapshotAddresses } from '../../chat/snapshot-events.ts'
import { problemsOf } from '../../socket/frame.ts'
import type { Parts } from '../context.ts'
import type { Handlers } from '../actions.ts'
import { sendEventImage } from './images-routes.ts'
import { sendOutput } from './outputs.ts'

/** Events in one answer. */
const PAGE = 500

const page = z.object({ after: z.coerce.number().int().nonnegative().default(0) })

export function snapshotsHandlers(parts: Parts) {
  const { accounts, sessions } = parts
  /** Throws `not_found`, the same for one that has expired, was revoked, or never was. */
  const find = async (id: string) => {
    const reader = await sessions.reader()
    const snapshot = await reader.shares.snapshot(id)
    const row = snapshot === undefined ? undefined : await reader.sessions.get(snapshot.sessionId)
    if (snapshot === undefined || row === undefined || (snapshot.expiresAt ?? Infinity) <= Date.now())
      throw new SandlotError('not_found', 'This link does not lead anywhere: it has expired or was revoked.')
    return { snapshot, row }
  }

  return {
    getSnapshot: async (c) => {
      const read = page.safeParse(c.req.query())
      if (!read.success) throw new SandlotError('bad_request', problemsOf(read.error))
      const { after } = read.data
      const id = c.req.param('id')
      const { snapshot, row } = await find(id)
      const reader = await sessions.reader()
      const log = await reader.log.read(snapshot.sessionId, after, PAGE)
      const until = log.filter((event) => (seqOf(event) ?? 0) <= snapshot.upTo)
      const last = until.at(-1)
      const seq = last === undefined ? after : (seqOf(last) ?? after)
      const { upTo, outputs, createdAt, expiresAt } = snapshot
      return c.json({
        title: (snapshot.title ?? row.title) || null,
        owner: (await authorsOf(accounts)).get(row.userId) ?? { id: row.userId, name: '' },
        upTo,
        outputs,
        createdAt,
        expiresAt,
        events: until.flatMap((event) => {
          const shown = eventOfSnapshot(event, snapshot)
          return shown === undefined ? [] : [withSnapshotAddresses(shown, snapshot)]
        }),
        next: last === undefined || seq >= upTo ? null : seq,
      } satisfies SnapshotView)
    },
    getSnapshotImage: async (c) => {
      const { id, seq, index } = c.req.param()
      const { snapshot } = await find(id)
      const { sessionId } = snapshot
      return sendEventImage(c, await sessions.reader(), { sessionId, seq, index }, (event) =>
        eventOfSnapshot(event, snapshot),
      )
    },
    getSnapshotOutput: async (c) => {
      const { id, callId } = c.req.param()
      const { snapshot } = await find(id)
      const reader = await sessions.reader()
      if (!(await hasEnded(reader, snapshot, callId)))
        throw new SandlotError('not_found', 'This snapshot has no such output.')
      return sendOutput(c, reader, snapshot.sessionId, callId)
    },
  } satisfies Partial<Handlers>
}

/** True if the snapshot has the outcome of this call: later output is not in it. */
async function hasEnded(reader: SessionReader, snapshot: Snapshot, callId: string): Promise<boolean> {
  if (!snapshot.outputs) return false
  const { sessionId, upTo } = snapshot
  for (let after = 0; after < upTo;) {
    const log = await reader.log.read(sessionId, after, PAGE)
    const outcome = log.find((event) => isOutcome(event) && event.toolCallId === callId)
    if (outcome !== undefined) return (seqOf(outcome) ?? Infinity) <= upTo
    const last = log.at(-1)
    if (last === undefined) return false
    after = seqOf(last) ?? upTo
  }
  return false
}
