/** All data of an older version survives the migration of its file. */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { makeSandlotEvent } from '@sandlot/shared/chat/events'
import { expect, test } from 'vitest'
import { openWriter } from '../../src/database/database.ts'
import type { SessionsSchema } from '../../src/tables/sessions.ts'
import { sessionsMigrations } from '../../src/store/migrations.ts'
import { openSessionStore } from '../../src/store/open.ts'

test('from before the limits of a day: tokens stay, what runs counts from its last event on', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'sandlot-older-'))
  try {
    const path = join(folder, 'sessions.db')
    const before = Object.entries(sessionsMigrations).filter(([name]) => name < '011')
    const old = await openWriter<SessionsSchema>(path, Object.fromEntries(before))
    const session = {
      user_id: 'ann',
      cwd: '/workspace',
      title: null,
      mode: 'manual',
      created_at: 1,
      last_seq: 0,
      owner_epoch: 0,
    }
    const sessions = [
      { ...session, id: 's', updated_at: 50, running_prompt_id: 'p' },
      { ...session, id: 't', updated_at: 60, running_prompt_id: null },
    ]
    await old.db.insertInto('sessions').values(sessions).execute()
    const usage = { id: 'u', user_id: 'ann', session_id: 's', prompt_id: 'p', model: 'm', cost: 0.5, at: 40 }
    const tokens = { input: 10, output: 5, cached: 4, reasoning: 0 }
    await old.db
      .insertInto('usage')
      .values({ ...usage, ...tokens })
      .execute()
    await old.close()

    const store = await openSessionStore(path)
    const spent = { turns: 1, calls: 0, tokens: 15, cost: 0.5, unpriced: 0 }
    expect(await store.usage.spentSince('ann', 0, 80)).toEqual({ ...spent, ms: 30 })
    expect(await store.usage.sums({ from: 0, to: 9 }, ['day', 'person', 'model'])).toEqual([
      {
        day: 0,
        person: 'ann',
        model: 'm',
        answers: 1,
        calls: 0,
        ...tokens,
        cachedShare: null,
        cost: 0.5,
        unpriced: 0,
      },
    ])
    // A day of before stays unknown, and takes no part in the share of all.
    const counted = { promptId: 'q', model: 'm', input: 100, output: 1, cached: 80, reasoning: 0, cost: 1 }
    for (const at of [70, 86_400_070])
      await store.log.append('s', [makeSandlotEvent({ type: 'stop_asked' }, {}, at)], {
        usage: { ...counted, at },
      })
    expect(await store.usage.sums({ from: 0, to: 0 }, [])).toMatchObject([{ cached: 84, cachedShare: null }])
    expect(await store.usage.sums({ from: 0, to: 9 }, [])).toMatchObject([{ cached: 164, cachedShare: 0.8 }])
    await store.close()
  } finally {
    rmSync(folder, { recursive: true })
  }
})

test('from before roles and settings: addresses stay, and settings begin empty and are seeded once', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'sandlot-older-'))
  try {
    const path = join(folder, 'sessions.db')
    const before = Object.entries(sessionsMigrations).filter(([name]) => name < '015')
    const old = await openWriter<{ people: { user_id: string; email: string } }>(
      path,
      Object.fromEntries(before),
    )
    await old.db.insertInto('people').values({ user_id: 'ann', email: 'ann@example.org' }).execute()
    await old.close()

    const store = await openSessionStore(path)
    expect([...(await store.people.known.all())]).toEqual([
      ['ann', { email: 'ann@example.org', role: undefined, teams: [] }],
    ])
    expect(await store.people.settings.all()).toEqual([])
    const subject = { kind: 'person', id: 'ann' } as const
    const seed = { subject, settings: { modeCeiling: 'manual' as const } }
    expect(await store.people.settings.seed([seed], 1)).toBe(true)
    expect(await store.people.settings.put({ ...seed, settings: {}, revision: 3 }, 2)).toBe(false)
    expect(await store.people.settings.put({ ...seed, settings: {}, revision: 2 }, 2)).toBe(true)
    expect(await store.people.settings.seed([seed], 3)).toBe(false)
    expect(await store.people.settings.all()).toMatchObject([{ subject, settings: {}, revision: 2 }])
    await store.people.known.remove('ann', 4)
    expect(await store.people.settings.all()).toEqual([])
    await store.close()
  } finally {
    rmSync(folder, { recursive: true })
  }
})

test('from before instruction files: a text stays, has none, and can have some', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'sandlot-older-'))
  try {
    const path = join(folder, 'sessions.db')
    const before = Object.entries(sessionsMigrations).filter(([name]) => name < '049')
    const old = await openWriter<{ instructions: { user_id: string; text: string; updated_at: number } }>(
      path,
      Object.fromEntries(before),
    )
    await old.db
      .insertInto('instructions')
      .values({ user_id: 'ann', text: 'Be brief.', updated_at: 1 })
      .execute()
    await old.close()

    const {
      people: { instructions },
      close,
    } = await openSessionStore(path)
    const both = async () => [await instructions.get('ann'), await instructions.files('ann')]
    expect(await both()).toEqual(['Be brief.', ''])
    await instructions.changeFiles('ann', 2, () => '[]')
    expect(await both()).toEqual(['Be brief.', '[]'])
    await close()
  } finally {
    rmSync(folder, { recursive: true })
  }
})

test('from before the choice of the API: an endpoint has none, and what it gets is nothing the version before reads', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'sandlot-older-'))
  try {
    const path = join(folder, 'sessions.db')
    const price = { input: 1, output: 2 }
    const models = [{ name: 'm' }, { name: 'm', label: 'N', price }]
    const endpoint = { name: 'Ours', baseUrl: 'https://api.openai.com/v1', models }
    const before = Object.entries(sessionsMigrations).filter(([name]) => name < '051')
    const old = await openWriter<SessionsSchema>(path, Object.fromEntries(before))
    const row = { id: 'e', endpoint: JSON.stringify(endpoint), revision: 1, created_at: 1 }
    await old.db.insertInto('model_endpoints').values(row).execute()
    await old.close()

    const store = await openSessionStore(path)
    expect(await store.people.modelEndpoints.all()).toEqual([{ id: 'e', revision: 1, endpoint }])
    const chosen = {
      ...endpoint,
      models: [
        { name: 'm', wire: 'responses' as const },
        { name: 'm', label: 'N', streaming: false, price: { ...price, cacheWrite: 4 } },
      ],
    }
    await store.people.modelEndpoints.put({ id: 'e', revision: 2, endpoint: chosen }, 2)
    expect(await store.people.modelEndpoints.all()).toEqual([{ id: 'e', revision: 2, endpoint: chosen }])
    await store.close()

    const again = await openWriter<SessionsSchema>(path, sessionsMigrations)
    const stored = await again.db.selectFrom('model_endpoints').select('endpoint').executeTakeFirstOrThrow()
    expect(JSON.parse(stored.endpoint)).toEqual(endpoint)
    // The version before changes the row: what it does not know stays.
    const renamed = JSON.stringify({ ...endpoint, name: 'Theirs' })
    await again.db.updateTable('model_endpoints').set({ endpoint: renamed, revision: 3 }).execute()
    await again.close()
    const last = await openSessionStore(path)
    expect(await last.people.modelEndpoints.all()).toEqual([
      { id: 'e', revision: 3, endpoint: { ...chosen, name: 'Theirs' } },
    ])
    await last.close()

    // The next version has another API, and knows more of the other model.
    const next = await openWriter<SessionsSchema>(path, sessionsMigrations)
    const asking = JSON.stringify({ m: { wire: 'newer' }, N: { streaming: false, newer: 1 } })
    await next.db.updateTable('model_endpoints').set({ asking }).execute()
    await next.close()
    const read = await openSessionStore(path)
    expect((await read.people.modelEndpoints.all())[0]?.endpoint.models).toEqual([
      { name: 'm' },
      { name: 'm', label: 'N', streaming: false, price },
    ])
    await read.close()
  } finally {
    rmSync(folder, { recursive: true })
  }
})
