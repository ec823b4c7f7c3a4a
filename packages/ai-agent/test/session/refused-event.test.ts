/** A real database refuses events: the prompt ends, whatever is refused, and nothing of it runs again. */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { isLive, metaOf, type SessionEvent, sandlotEventOf } from '@sandlot/shared/chat/events'
import { emptyTranscript, foldTranscript } from '@sandlot/shared/transcript/transcript'
import { openSqliteWriter } from '@sandlot/storage/database/sqlite-file'
import { openSessionStore } from '@sandlot/storage/store/open'
import { isOutage, isRefusal } from '@sandlot/storage/storage-error'
import { afterAll, describe, expect, test } from 'vitest'
import { describeOnPostgres } from '../../../storage/test/support/on-postgres.ts'
import { PromptQueue } from '../../src/limits/prompt-queue.ts'
import {
  AgentBench,
  type Core,
  ask,
  happened,
  heldTool,
  newSession,
  outcomes,
  whenIdle,
} from '../support/agent-fixture.ts'
import { type Scripted, textAnswer, toolCalls } from '../support/fake-provider.ts'

/** A database whose table of events refuses, from now on, rows like one of these. */
interface Refusing {
  where: string
  refuse(...patterns: string[]): Promise<void>
}

/** `work` with a core on it, and again with another, as after a restart. */
async function onCore(
  bench: AgentBench,
  where: string,
  tool: ReturnType<typeof heldTool>,
  work: (core: Core) => Promise<void>,
) {
  const store = await openSessionStore(where)
  const core = await bench.core({
    tools: [tool.tool],
    wrap: (parts) => {
      const line = new PromptQueue({ slots: 1, leaving: parts.leaving, log: parts.log })
      return { ...parts, store, line }
    },
  })
  try {
    await work(core)
  } finally {
    await core.leave()
    await store.close()
  }
}

const call = toolCalls([{ id: 'c1', name: 'held', args: { key: 'k' } }], { text: 'Running it.' })
const ends = (log: readonly SessionEvent[]) => happened(log, 'prompt_ended')
const FAILED = { reason: 'error', cause: 'internal', internal: 'store_failed' }

function refusals(database: () => Promise<Refusing>): void {
  test.each<[string, string, Scripted[], string]>([
    ['the answer', '%poison%', [textAnswer('The poison.')], 'poison'],
    ['a call', '%"tool_call"%', [call], '"tool_call"'],
    ['that a call has begun', '%in_progress%', [call], 'in_progress'],
    ['an outcome', '%done k%', [call], 'done k'],
    ['every outcome', '%tool_call_update%completed%', [call], 'done k'],
    ['that a turn has ended', '%turn_ended%', [call], 'turn_ended'],
  ])(
    '%s: the prompt ends as store_failed without it, and the next one works',
    async (_what, pattern, script, absent) => {
      const tool = heldTool('held', true)
      tool.release('k')
      const { where, refuse } = await database()
      await using bench = await AgentBench.start([...script, textAnswer('Fine.')])
      await onCore(bench, where, tool, async (core) => {
        const session = await newSession(core)
        await refuse(pattern)
        const { done } = await session.prompt('go')
        expect(await done).toMatchObject({
          reason: 'error',
          text: expect.stringContaining('could not be saved'),
        })
        expect(ends(session.log)).toMatchObject([FAILED])
        expect(session.running).toBe(false)
        expect(tool.begun.length).toBeLessThanOrEqual(1)
        expect(JSON.stringify(session.log)).not.toContain(absent)
        expect(session.log.map((event) => metaOf(event).seq)).toEqual(session.log.map((_, n) => n + 1))
        await refuse()
        await ask(session, 'and now?')
        expect(ends(session.log)).toMatchObject([FAILED, { reason: 'completed' }])
      })
    },
  )

  test('of everything: it ends in memory and is shown, its slot is free, and its end is stored first', async () => {
    const tool = heldTool('held', true)
    const { where, refuse } = await database()
    await using bench = await AgentBench.start([call, textAnswer('Of another.')])
    let id = ''
    await onCore(bench, where, tool, async (core) => {
      const [session, other] = [await newSession(core), await newSession(core)]
      ;({ id } = session)
      const { done } = await session.prompt('go')
      await tool.whenBegun(1)
      await refuse(`%${session.id}%`, '%prompt_ended%', '%tool_call_update%')
      tool.release('k')
      expect(await done).toMatchObject({ reason: 'error' })
      expect(session.running).toBe(false)
      expect(ends(session.log)).toEqual([])
      expect(session.summary()).toMatchObject({ running: false, ended: 'failed' })
      // Later readers see it too.
      const { catchUp } = session.subscribe(0)
      const [shown] = catchUp.filter((event) => sandlotEventOf(event)?.type === 'prompt_ended')
      expect(shown && isLive(shown) && sandlotEventOf(shown)).toMatchObject({
        ...FAILED,
        text: expect.stringContaining('not saved'),
      })
      const page = catchUp.reduce(foldTranscript, emptyTranscript())
      expect(page.prompt).toBeNull()
      expect(page.entries.find((entry) => entry.type === 'call')).toMatchObject({
        status: 'failed',
        reason: 'unknown_effect',
      })
      await session.cancel()
      // Nothing new begins before it.
      await expect(session.prompt('more')).rejects.toThrow()
      expect(happened(session.log, 'prompt_started')).toHaveLength(1)
      // Its slot is another's. That one is refused its end as well.
      await (
        await other.prompt('mine')
      ).done
    })
    const rows = await openSessionStore(where)
    expect((await rows.sessions.unfinished()).length).toBe(2)
    await rows.close()

    // A restart while it is still refused: opened, shown, and nothing runs.
    await onCore(bench, where, tool, async (core) => {
      await core.manager.resumeUnfinished()
      const session = await core.manager.get('u_ada', id)
      expect(session.running).toBe(false)
      expect(
        session.subscribe(0).catchUp.some((event) => sandlotEventOf(event)?.type === 'prompt_ended'),
      ).toBe(true)
      expect((await core.manager.list('u_ada')).find((one) => one.id === id)).toMatchObject({
        unsavedEndAt: expect.any(Number),
      })
    })

    await refuse()
    bench.provider.add(textAnswer('Fine.'))
    await onCore(bench, where, tool, async (core) => {
      await core.manager.resumeUnfinished()
      const session = await core.manager.get('u_ada', id)
      await whenIdle(session)
      expect(ends(session.log)).toMatchObject([FAILED])
      expect(session.running).toBe(false)
      await ask(session, 'and now?')
      expect(ends(session.log)).toMatchObject([FAILED, { reason: 'completed' }])
      expect(outcomes(session.log)).toEqual({})
      const order = session.log.flatMap((event) => sandlotEventOf(event)?.type ?? [])
      expect(order.filter((type) => type.startsWith('prompt_'))).toEqual([
        'prompt_started',
        'prompt_ended',
        'prompt_started',
        'prompt_ended',
      ])
      expect(await core.store.sessions.unfinished()).toEqual([])
    })
    expect(tool.begun).toEqual(['k'])
    expect(bench.provider.requests).toHaveLength(3)
  })

  test('of an end, while the process lives: the next message stores it before itself', async () => {
    const tool = heldTool('held', true)
    const { where, refuse } = await database()
    await using bench = await AgentBench.start([textAnswer('One.'), textAnswer('Two.')])
    await onCore(bench, where, tool, async (core) => {
      const session = await newSession(core)
      await refuse('%prompt_ended%')
      await (
        await session.prompt('one')
      ).done
      expect(session.running).toBe(false)
      await refuse()
      await ask(session, 'two')
      expect(ends(session.log)).toMatchObject([FAILED, { reason: 'completed' }])
    })
  })
}

describe('SQLite refuses', () => {
  const folders: string[] = []
  afterAll(() => folders.forEach((folder) => rmSync(folder, { recursive: true, force: true })))
  refusals(() => {
    const folder = mkdtempSync(join(tmpdir(), 'sandlot-refused-'))
    folders.push(folder)
    const where = join(folder, 'sessions.db')
    return Promise.resolve({
      where,
      refuse: (...patterns) => {
        const file = openSqliteWriter(where)
        file.exec('drop trigger if exists refused')
        const like = patterns.map((pattern) => `new.json || new.session_id like '${pattern}'`).join(' or ')
        if (like !== '')
          file.exec(
            `create trigger refused before insert on events when ${like} begin select raise(abort, 'refused'); end`,
          )
        file.close()
        return Promise.resolve()
      },
    })
  })
})

describeOnPostgres('PostgreSQL refuses', (postgres) => {
  let count = 0
  refusals(async () => {
    const refusedBy = ++count
    const name = `refused_${refusedBy}`
    const where = await postgres.database(name)
    return {
      where,
      refuse: async (...patterns) => {
        await postgres.rows(name, 'alter table sessions.events drop constraint if exists refused')
        const like = patterns.map((pattern) => `(json || session_id) not like '${pattern}'`).join(' and ')
        // By turns: the row breaks a constraint (class 23), or cannot be computed with (class 22).
        const check =
          refusedBy % 2 === 0
            ? like
            : `case when ${like} then true else 1 / (length(json) - length(json)) = 1 end`
        if (like !== '')
          await postgres.rows(
            name,
            `alter table sessions.events add constraint refused check (${check}) not valid`,
          )
      },
    }
  })

  test('a server that is not there is an outage and no refusal', async () => {
    const name = `refused_${++count}`
    const store = await openSessionStore(await postgres.database(name))
    await store.sessions.create({ id: 's', userId: 'u', cwd: '/', mode: 'yolo', at: 1 })
    await postgres.crash(async () => {
      const error: unknown = await store.sessions.get('s').catch((failure: unknown) => failure)
      expect([isOutage(error), isRefusal(error)]).toEqual([true, false])
    })
    await store.close()
  })
})
