/** Rows of rules that cannot be read: what allows is left out, anything else stops that person's rules, and nobody else's. */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { openSqliteWriter } from '../../src/database/sqlite-file.ts'
import { openSessionStore } from '../../src/sessions/open.ts'
import type { SessionStore } from '../../src/sessions/store.ts'
import type { StorageError } from '../../src/storage-error.ts'

let folder: string
let store: SessionStore
let leftOut: StorageError[]
beforeEach(async () => {
  folder = mkdtempSync(join(tmpdir(), 'sandlot-damaged-'))
  leftOut = []
  store = await openSessionStore(join(folder, 'sessions.db'), { leftOut: (why) => void leftOut.push(why) })
  for (const [at, effect] of (['allow', 'ask', 'deny'] as const).entries())
    await store.rules.add('ann', { id: effect, effect, match: { host: 'a.test' }, createdAt: at })
  await store.rules.add('bob', { id: 'bobs', effect: 'allow', match: { tool: '*' }, createdAt: 1 })
})
afterEach(async () => {
  await store.close()
  rmSync(folder, { recursive: true })
})

function damage(id: string, column: 'effect' | 'match_json', value: string): void {
  const file = openSqliteWriter(join(folder, 'sessions.db'))
  file.prepare(`update rules set ${column} = ? where id = ?`).run(value, id)
  file.close()
}

test.each(['{', '{}', '{"host":7}', 'null'])(
  'one that allows (%s) is left out, and told of once',
  async (json) => {
    damage('allow', 'match_json', json)
    for (let time = 0; time < 2; time++)
      expect((await store.rules.list('ann')).map(({ id }) => id)).toEqual(['ask', 'deny'])
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
    damage(id, column, value)
    await expect(store.rules.list('ann')).rejects.toMatchObject({ name: 'StorageError', code: 'corrupt' })
    expect(leftOut).toEqual([])
    expect(await store.rules.list('bob')).toHaveLength(1)
    expect(await store.rules.revoke('ann', id)).toBe(true)
    expect(await store.rules.list('ann')).toHaveLength(2)
  },
)
