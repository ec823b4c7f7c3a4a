/** Failing writes in a group: they do not affect the others, and fail as they would alone. */
import { join } from 'node:path'
import { makeMeta } from '@sandlot/shared/chat/event-meta'
import type { SessionEvent } from '@sandlot/shared/chat/events'
import fc from 'fast-check'
import { sql } from 'kysely'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { extent } from '../../../../test/campaign.ts'
import { type OpenDatabase, openWriter } from '../../src/database/database.ts'
import { GroupCommit } from '../../src/database/group-commit.ts'
import type { SessionsSchema } from '../../src/tables/sessions.ts'
import { sessionsMigrations } from '../../src/store/migrations.ts'
import { storedLog } from '../../src/sessions/log.ts'
import { storedSessions } from '../../src/sessions/sessions.ts'
import type { Effects } from '../../src/tables/records.ts'
import { StoreRoom } from '../../src/sessions/store-room.ts'
import { Fence } from '../../src/replicas/replicas.ts'
import { testFolder } from '../../../../test/folders.ts'

const MAX_RULES = 1_000

let folder: string
let database: OpenDatabase<SessionsSchema>
beforeEach(async () => {
  folder = testFolder('failing')
  database = await openWriter(join(folder, 'sessions.db'), sessionsMigrations)
  await sql`pragma synchronous = off`.execute(database.db)
})
afterEach(() => database.close())

/** Every way in which a write of a user fails, and some that do not; most have written something when they do. */
const EFFECTS = ['none', 'submission', 'asked', 'answered', 'outcome', 'too many rules'] as const
const write = fc.oneof(
  fc.record({ session: fc.constantFrom('a', 'b', 'c'), takesOver: fc.boolean() }),
  fc.record({
    session: fc.constantFrom('a', 'b', 'none'),
    effect: fc.constantFrom(...EFFECTS),
    id: fc.constantFrom('1', '2'),
    epoch: fc.constantFrom(undefined, undefined, 0, 1),
  }),
)
type Write = typeof write extends fc.Arbitrary<infer One> ? One : never

function effectsOf(effect: (typeof EFFECTS)[number], id: string, userId: string): Effects {
  switch (effect) {
    case 'none':
      return {}
    case 'submission':
      return { submission: { userId, requestId: id, promptId: 'p' } }
    case 'asked':
      return { approvalAsked: { toolCallId: id, askedAt: 1, expiresAt: 2 } }
    case 'answered':
      return { approvalAnswered: { toolCallId: id, answeredAt: 2, optionId: 'o', by: 'user' } }
    case 'outcome':
      return {
        submission: { userId, requestId: `of ${id}`, promptId: 'p' },
        outcome: { promptId: 'p', callId: id, tool: 't', status: 'completed', runMs: 1, waitMs: 1, at: 1 },
      }
    case 'too many rules': {
      const match = { shell: 'x' }
      const rule = { id: `${userId} ${id}`, effect: 'allow', match, createdAt: 1 } as const
      return { rules: Array.from({ length: MAX_RULES + 1 }, () => rule) }
    }
  }
}

function said(text: string): SessionEvent {
  const content = { type: 'text', text } as const
  return { sessionUpdate: 'agent_message_chunk', messageId: 'm', content, _meta: makeMeta({}, 1) }
}

test('property: any mix of good writes and failing ones is one commit, and each comes out as if it were alone', async () => {
  const { db } = database
  let written = 0
  const commits = new GroupCommit(db, () => void written++)
  const parts = [db, commits, new StoreRoom(db, undefined), new Fence()] as const
  const { append, read, takeOver } = storedLog(...parts)
  const { create, get } = storedSessions(...parts)

  /**
   * Outcome of each write and of the sessions; ids begin with `run`, which the outcome does not
   * name.
   */
  const outcomes = async (run: string, writes: readonly Write[], together: boolean): Promise<unknown> => {
    const act = (one: Write, place: number): Promise<unknown> => {
      const id = `${run} ${one.session}`
      if ('takesOver' in one && one.takesOver) return takeOver(id)
      if ('takesOver' in one) return create({ id, userId: run, cwd: '/workspace', mode: 'yolo', at: place })
      return append(id, [said(`${place}`)], effectsOf(one.effect, one.id, run), one.epoch)
    }
    await create({ id: `${run} a`, userId: run, cwd: '/workspace', mode: 'yolo', at: 1 })
    await create({ id: `${run} b`, userId: run, cwd: '/workspace', mode: 'yolo', at: 1 })
    const before = written
    const ends: PromiseSettledResult<unknown>[] = []
    if (together) ends.push(...(await Promise.allSettled(writes.map(act))))
    else for (const [at, one] of writes.entries()) ends.push(...(await Promise.allSettled([act(one, at)])))
    if (together) expect(written - before).toBe(1)
    const ids = ['a', 'b', 'c'].map((name) => `${run} ${name}`)
    const left = await Promise.all(ids.map(async (id) => [await get(id), await read(id)]))
    const told = ends.map((end) =>
      end.status === 'fulfilled' ? end.value : ((end.reason as { code?: string }).code ?? String(end.reason)),
    )
    return JSON.parse(JSON.stringify([told, left]).replaceAll(run, 'run'))
  }

  let round = 0
  await fc.assert(
    fc.asyncProperty(fc.array(write, { minLength: 2, maxLength: 20 }), async (writes) => {
      round += 1
      expect(await outcomes(`together-${round}`, writes, true)).toEqual(
        await outcomes(`alone-${round}`, writes, false),
      )
    }),
    { numRuns: extent(40, 1_000) },
  )
})

test('when the database ends a whole transaction by itself, each write of it is done alone', async () => {
  const { db } = database
  let written = 0
  const commits = new GroupCommit(db, () => void written++)
  const count = (name: string, value: number, begin = sql`insert`) =>
    commits.run((trx) => sql`${begin} into counters values (${name}, ${value})`.execute(trx))
  // Simulates a full disk, where SQLite may end the transaction in any statement.
  const ends = await Promise.allSettled([
    count('a', 1),
    count('a', 2, sql`insert or rollback`),
    count('a', 3),
    count('b', 4),
  ])
  expect(ends.map(({ status }) => status)).toEqual(['fulfilled', 'rejected', 'rejected', 'fulfilled'])
  expect(written).toBe(2)
})

test('other work of the process runs between the writes of one commit', async () => {
  let written = 0
  const commits = new GroupCommit(database.db, () => void written++)
  let turns = 0
  const turn = (): void => void (turns++, written === 0 && setImmediate(turn))
  setImmediate(turn)
  const turnsAt: number[] = []
  const slow = async (): Promise<void> => {
    turnsAt.push(turns)
    for (const until = performance.now() + 5; performance.now() < until;);
  }
  await Promise.all(Array.from({ length: 10 }, () => commits.run(slow)))
  expect(written).toBe(1)
  expect(new Set(turnsAt).size).toBe(10)
})

test('when the commit listener throws, nothing is written a second time', async () => {
  const failure = new Error('heard')
  const commits = new GroupCommit(database.db, () => {
    throw failure
  })
  let runs = 0
  const both = [commits.run(async () => void runs++), commits.run(async () => void runs++)]
  await expect(commits.idle()).rejects.toBe(failure)
  await Promise.all(both)
  expect(runs).toBe(2)
})
