/** Unreadable rows of rules: one that allows is skipped, any other stops that user's rules only. */
import { sql } from 'kysely'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { openStore } from '../../src/database/open.ts'
import { openSessionStore } from '../../src/store/open.ts'
import { sessionsMigrations } from '../../src/store/migrations.ts'
import type { SessionStore } from '../../src/sessions/store.ts'
import type { StorageError } from '../../src/storage-error.ts'
import { onBoth } from '../support/databases.ts'

onBoth(({ fresh }) => {
  let where: string
  let store: SessionStore
  let leftOut: StorageError[]
  beforeEach(async () => {
    where = await fresh()
    leftOut = []
    store = await openSessionStore(where, { leftOut: (why) => void leftOut.push(why) })
    for (const [at, effect] of (['allow', 'ask', 'deny'] as const).entries())
      await store.people.rules.add('ann', { id: effect, effect, match: { host: 'a.test' }, createdAt: at })
    await store.people.rules.add('bob', { id: 'bobs', effect: 'allow', match: { tool: '*' }, createdAt: 1 })
  })
  afterEach(() => store.close())

  async function damage(id: string, column: 'effect' | 'match_json', value: string): Promise<void> {
    const { db, close } = await openStore(where, 'sessions', sessionsMigrations)
    await sql`update rules set ${sql.ref(column)} = ${value} where id = ${id}`.execute(db)
    await close()
  }

  test.each(['{', '{}', '{"host":7}', 'null'])(
    'one that allows (%s) is left out, and told of once',
    async (json) => {
      await damage('allow', 'match_json', json)
      for (let time = 0; time < 2; time++)
        expect((await store.people.rules.list('ann')).map(({ id }) => id)).toEqual(['ask', 'deny'])
      expect(leftOut).toMatchObject([{ name: 'StorageError', code: 'corrupt' }])
      expect(leftOut[0]?.message).toContain('The rule allow is damaged')
    },
  )

  test.each([
    ['asks', 'ask', 'match_json', '{'],
    ['denies', 'deny', 'match_json', '{'],
    ['did allow, and may be anything now', 'allow', 'effect', 'Allow'],
  ] as const)(
    'one that %s stops everything of that person until it is revoked',
    async (_what, id, column, value) => {
      await damage(id, column, value)
      await expect(store.people.rules.list('ann')).rejects.toMatchObject({
        name: 'StorageError',
        code: 'corrupt',
      })
      expect(leftOut).toEqual([])
      expect(await store.people.rules.list('bob')).toHaveLength(1)
      expect(await store.people.rules.revoke('ann', id)).toBe(true)
      expect(await store.people.rules.list('ann')).toHaveLength(2)
    },
  )
})
