/**
 * The search index finds the same as a scan of every text, limited to texts that the reader may
 * see.
 */
import { setTimeout as sleep } from 'node:timers/promises'
import { searchQuery } from '@sandlot/shared/search/search'
import { makeMeta } from '@sandlot/shared/chat/event-meta'
import { type SessionEvent, makeSandlotEvent, seqOf } from '@sandlot/shared/chat/events'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { campaign, extent, randomFrom } from '../../../../test/campaign.ts'
import { openWriter } from '../../src/database/database.ts'
import { openStore, openStoreReader } from '../../src/database/open.ts'
import type { SessionsSchema } from '../../src/tables/sessions.ts'
import { sessionsMigrations } from '../../src/store/migrations.ts'
import { openSessionReader, openSessionStore } from '../../src/store/open.ts'
import { NO_USER } from '../../src/tables/rows.ts'
import type { SessionReader, SessionStore } from '../../src/sessions/store.ts'
import { onBoth } from '../support/databases.ts'

const AT = 1_790_000_000_000

onBoth(({ name, fresh }) => {
  let where: string
  let store: SessionStore
  let reader: SessionReader

  beforeEach(async () => {
    where = await fresh()
    store = await openSessionStore(where)
    reader = await openSessionReader(where)
  })
  afterEach(async () => {
    await reader.close()
    await store.close()
  })

  function chat(id: string, userId = 'ann') {
    return store.sessions.create({ id, userId, cwd: '/workspace', mode: 'manual', at: AT })
  }

  function said(text: string, at = AT, kind: 'user' | 'agent' = 'user'): SessionEvent {
    return {
      sessionUpdate: kind === 'user' ? 'user_message_chunk' : 'agent_message_chunk',
      messageId: `m ${text.slice(0, 20)}`,
      content: { type: 'text', text },
      _meta: makeMeta({}, at),
    }
  }

  function titled(title: string): SessionEvent {
    return { sessionUpdate: 'session_info_update', title, _meta: makeMeta({}, AT) }
  }

  const call = (toolCallId: string, command: string): SessionEvent => ({
    sessionUpdate: 'tool_call',
    toolCallId,
    title: 'Run',
    name: 'run_shell_command',
    kind: 'execute',
    status: 'pending',
    rawInput: { command },
    _meta: makeMeta({}, AT),
  })
  const outcome = (toolCallId: string, forModel: string): SessionEvent => ({
    sessionUpdate: 'tool_call_update',
    toolCallId,
    status: 'completed',
    rawOutput: { forModel },
    _meta: makeMeta({}, AT),
  })

  async function find(
    q: string,
    more: Record<string, string> = {},
    who: { id: string; teams?: string[] } = { id: 'ann' },
  ) {
    return reader.sessions.search(who, searchQuery.parse({ q, ...more }))
  }
  const kindsOf = async (...asked: Parameters<typeof find>) =>
    (await find(...asked)).hits.map(({ kind }) => kind)

  /** Waits for the late index. */
  async function allIndexed(): Promise<void> {
    const { db, close } = await openStoreReader<SessionsSchema>(where, 'sessions', sessionsMigrations)
    const waiting = () =>
      db
        .selectFrom('sessions')
        .select('id')
        .where('user_id', '!=', NO_USER)
        .whereRef('indexed_seq', '<', 'last_seq')
        .execute()
    while ((await waiting()).length > 0) await sleep(5)
    await close()
  }

  describe('what is found', () => {
    test('names, messages, answers, comments, commands and outputs, each as what it is', async () => {
      await chat('s')
      await store.log.append('s', [
        titled('about zebras'),
        said('zebras please'),
        said('zebras it is', AT, 'agent'),
        makeSandlotEvent({ type: 'comment', commentId: 'k1', text: 'zebras, really?', mentions: [] }, {}, AT),
        call('c1', 'echo zebras'),
      ])
      await store.outputs.append('s', 'c1', 0, new TextEncoder().encode('\u001b[31mzebras\u001b[0m\n'))
      await store.log.append('s', [outcome('c1', 'nothing of it for the model')])
      expect(await kindsOf('zebras')).toEqual(['title', 'output', 'command', 'comment', 'answer', 'message'])
      expect((await find('zebras', { kind: 'command,output' })).hits.map(({ id }) => id)).toEqual([
        'c1',
        'c1',
      ])
      expect(await kindsOf('zebras', { who: 'agent' })).toEqual(['output', 'command', 'answer'])
      expect(await kindsOf('model')).toEqual([])
    })

    test('a chat is found by the name it has, not by those it had', async () => {
      await chat('s')
      await store.log.append('s', [titled('walrus'), said('hello')])
      await store.log.append('s', [titled('giraffe')])
      expect(await kindsOf('walrus')).toEqual([])
      expect((await find('giraffe')).hits).toMatchObject([
        { kind: 'title', sessionId: 's', id: 's', title: null },
      ])
    })

    test('accents, case, width and scripts without spaces', async () => {
      await chat('s')
      await store.log.append('s', [
        said('Die Größe des Cafés in ΑΘΉΝΑ'),
        said('私は東京に住んでいます。'),
        said('สวัสดีครับ'),
        said('हिन्दी में'),
      ])
      const counts = async (...texts: string[]) =>
        Promise.all(texts.map(async (text) => (await find(text)).hits.length))
      expect(await counts('grosse', 'GRÖSS', 'cafes', 'αθηνα', 'ｃａｆｅ')).toEqual([1, 1, 1, 1, 1])
      expect(await counts('東京', '京', '京東', '住んで', 'ครับ', 'हिन्दी', 'हि')).toEqual([
        1, 1, 0, 1, 1, 1, 1,
      ])
    })

    test('words begin what is found, quotes and paths are found as they stand', async () => {
      await chat('s')
      await store.log.append('s', [said('edit packages/web/src/main.tsx in the configuration')])
      const found = async (text: string) => (await find(text)).hits.length === 1
      expect(await found('conf edit')).toBe(true)
      expect(await found('"conf" edit')).toBe(false)
      expect(await found('"in the configuration"')).toBe(true)
      expect(await found('"the in"')).toBe(false)
      expect(await found('web/src/ma')).toBe(true)
      expect(await found('src/web')).toBe(false)
    })

    test('the snippet shows the place with the most words, marked', async () => {
      await chat('s')
      const filler = 'lorem ipsum '.repeat(100)
      await store.log.append('s', [said(`needle ${filler} the needle\nin a haystack ${filler}`)])
      const { hits } = await find('needle hay')
      expect(hits[0]?.snippet.filter(({ match }) => match).map(({ text }) => text)).toEqual([
        'needle',
        'haystack',
      ])
      const all = hits[0]?.snippet.map(({ text }) => text).join('') ?? ''
      expect(all).toMatch(/^… .*the needle in a haystack.* …$/)
    })

    test('since, until, one chat, and pages', async () => {
      await chat('s')
      await chat('t')
      for (let day = 0; day < 5; day++)
        await store.log.append(day % 2 ? 't' : 's', [said(`otter ${day}`, AT + day * 1000)])
      const words = async (more: Record<string, string>) =>
        (await find('otter', more)).hits.map(({ snippet }) => snippet.map(({ text }) => text).join(''))
      expect(await words({})).toEqual(['otter 4', 'otter 3', 'otter 2', 'otter 1', 'otter 0'])
      expect(await words({ chat: 't' })).toEqual(['otter 3', 'otter 1'])
      expect(await words({ since: String(AT + 1000), until: String(AT + 3000) })).toEqual([
        'otter 3',
        'otter 2',
        'otter 1',
      ])
      const first = await find('otter', { limit: '2' })
      const second = await find('otter', { limit: '2', before: String(first.next) })
      const third = await find('otter', { limit: '2', before: String(second.next) })
      expect(
        [first, second, third].flatMap(({ hits }) => hits.map(({ seq, sessionId }) => `${sessionId}${seq}`)),
      ).toEqual(['s3', 't2', 's2', 't1', 's1'])
      expect(third.next).toBeNull()
    })

    test('any text is a search', async () => {
      await chat('s')
      await store.log.append('s', [said('and not near text x')])
      for (const q of [
        '',
        ' ',
        '"',
        '"""',
        "'",
        '*',
        'AND',
        'NOT',
        'NEAR(',
        'a OR',
        '(',
        ')',
        ':',
        'text:x',
        '^x',
        '-x',
        '\0',
        '\\',
        '%',
        '_',
        '💥',
        '\uD800',
        'x'.repeat(300),
        '" '.repeat(150),
        'a '.repeat(150),
        'x"y',
        '--',
        ';drop',
        'NEAR("a" "b")',
        '+',
        '{a}',
        'ﬀ',
        '½',
      ])
        await expect(find(q), q).resolves.toBeDefined()
    })
  })

  describe('who finds it', () => {
    test('the owner and those who see it now, nobody else, and after it is handed over the new owner', async () => {
      await chat('s')
      await store.log.append('s', [said('pelican')])
      const ids = async (id: string, teams?: string[]) =>
        (await find('pelican', {}, teams === undefined ? { id } : { id, teams })).hits.map(
          ({ sessionId }) => sessionId,
        )
      expect(await ids('bob')).toEqual([])
      const share = {
        id: 'x',
        access: 'watch',
        mode: 'manual',
        mayApprove: false,
        createdAt: AT,
        expiresAt: null,
      } as const
      await store.shares.put('s', { ...share, kind: 'person', targetId: 'bob' }, 'ann')
      await store.shares.put(
        's',
        { ...share, id: 'y', kind: 'team', targetId: 'birds', expiresAt: Date.now() - 1 },
        'ann',
      )
      expect(await ids('bob')).toEqual(['s'])
      expect(await ids('cid', ['birds'])).toEqual([])
      await store.shares.handOver('s', 'bob')
      expect(await ids('ann')).toEqual([])
      await allIndexed()
      expect(await ids('bob')).toEqual(['s'])
    })

    test('a chat that is deleted is gone, also its words', async () => {
      await chat('s')
      await store.log.append('s', [titled('ibis'), said('ibis'), call('c', 'ibis')])
      await store.sessions.remove('s')
      expect((await find('ibis')).hits).toEqual([])
      await store.close()
      const { db, close } = await openStore<{ search_words: object }>(where, 'sessions', sessionsMigrations)
      const words = await db
        .selectFrom('search_words')
        .select(({ fn }) => fn.countAll().as('count'))
        .execute()
      expect(words).toEqual([{ count: 0 }])
      await close()
      store = await openSessionStore(where)
    })
  })

  test.runIf(name === 'SQLite')(
    'chats of an older version are indexed after the start, behind one that is damaged',
    async () => {
      await store.close()
      await reader.close()
      const path = await fresh()
      const before = Object.fromEntries(Object.entries(sessionsMigrations).filter(([name]) => name < '023'))
      const old = await openWriter<Record<'sessions' | 'events', Record<string, unknown>>>(path, before)
      const session = {
        user_id: 'ann',
        cwd: '/',
        title: null,
        mode: 'manual',
        created_at: 1,
        owner_epoch: 0,
        running_prompt_id: null,
      }
      const count = 130
      await old.db
        .insertInto('sessions')
        .values([
          { ...session, id: 's', updated_at: 2, last_seq: count },
          { ...session, id: 'bad', updated_at: 3, last_seq: 2 },
        ])
        .execute()
      const rows = Array.from({ length: count }, (_, index) => ({
        session_id: 's',
        seq: index + 1,
        at: AT,
        json: JSON.stringify(said(`heron ${index}`)),
      }))
      await old.db.insertInto('events').values(rows).execute()
      await old.db
        .insertInto('events')
        .values([
          { session_id: 'bad', seq: 1, at: AT, json: '{' },
          { session_id: 'bad', seq: 2, at: AT, json: JSON.stringify(said('heron behind it')) },
        ])
        .execute()
      await old.close()
      store = await openSessionStore(path)
      // Written during late indexing.
      await store.log.append('s', [said('heron new')])
      reader = await openSessionReader(path)
      where = path
      await allIndexed()
      expect((await find('heron', { limit: '1', chat: 's' })).hits).toMatchObject([{ seq: count + 1 }])
      expect(await kindsOf('"heron 0"')).toEqual(['message'])
      expect(await kindsOf('behind')).toEqual(['message'])
    },
  )

  test('a look through every text finds the same, after random appends, copies, renames, hand-overs and deletions', async () => {
    const random = randomFrom(`${campaign.seed} search`)
    const pick = <T>(from: readonly T[]): T => from[Math.floor(random() * from.length)] ?? (from[0] as T)
    const words = [
      'alpha',
      'alphabet',
      'beta',
      'Größe',
      '日本',
      '本日',
      'a_b',
      'src/main.ts',
      'naïve',
      'x1',
      'MÉTÉO',
      'кот',
    ]
    const people = ['ann', 'bob']
    interface Kept {
      id: string
      owner: string
      texts: { seq: number; text: string; kind: string }[]
      events: SessionEvent[]
    }
    const kept = new Map<string, Kept>()
    let made = 0
    const newId = () => `s${made++}`
    const text = () =>
      Array.from({ length: 1 + Math.floor(random() * 6) }, () => pick(words)).join(pick([' ', ', ', '\n']))
    for (let step = 0; step < extent(120, 1_000); step++) {
      const some = pick([...kept.values()])
      const what = random()
      if (some === undefined || what < 0.1) {
        const [id, owner] = [newId(), pick(people)]
        await chat(id, owner)
        kept.set(id, { id, owner, texts: [], events: [] })
      } else if (what < 0.75) {
        const written = text()
        const event =
          what < 0.2
            ? titled(written)
            : what < 0.5
              ? said(written, AT + step * 300)
              : said(written, AT + step * 300, 'agent')
        const [stored] = await store.log.append(some.id, [event])
        if (stored === undefined) throw new Error('nothing was stored')
        const kind = event.sessionUpdate === 'session_info_update' ? 'title' : 'text'
        if (kind === 'title') some.texts = some.texts.filter((one) => one.kind !== 'title')
        some.texts.push({ seq: seqOf(stored) ?? 0, text: written, kind })
        some.events.push(stored)
      } else if (what < 0.83) {
        const fork = {
          id: newId(),
          userId: pick(people),
          cwd: '/',
          mode: 'manual',
          title: null,
          at: AT,
        } as const
        await store.sessions.fork(some.id, fork, some.events)
        kept.set(fork.id, {
          id: fork.id,
          owner: fork.userId,
          texts: [...some.texts],
          events: [...some.events],
        })
      } else if (what < 0.9) {
        some.owner = pick(people)
        await store.shares.handOver(some.id, some.owner)
      } else {
        await store.sessions.remove(some.id)
        kept.delete(some.id)
      }
    }
    /** Folded, each word of CJK by itself, with a space round each. */
    const plain = (from: string) =>
      ` ${from
        .toLowerCase()
        .normalize('NFD')
        .replaceAll(/[\u0300-\u036f]/g, '')
        .replaceAll(/(\p{Script=Han})/gu, ' $1 ')
        .replaceAll(/[^\p{L}\p{N}]+/gu, ' ')
        .trim()} `
    const naive = (owner: string, q: string) =>
      [...kept.values()]
        .filter((one) => one.owner === owner)
        .flatMap(({ id, texts }) => texts.map((one) => ({ id, ...one })))
        .filter(({ text: has }) => q.split(' ').every((word) => plain(has).includes(plain(word).trimEnd())))
        .map(({ id, seq }) => `${id} ${seq}`)
        .toSorted()
    const indexed = async (owner: string, q: string, limit: string) => {
      const found: string[] = []
      for (const kind of ['message,answer', 'title']) {
        for (let before: number | null | undefined; before !== null;) {
          const from: Record<string, string> = before === undefined ? {} : { before: String(before) }
          const page = await find(q, { limit, kind, ...from }, { id: owner })
          found.push(...page.hits.map(({ sessionId, seq }) => `${sessionId} ${seq}`))
          before = page.next
        }
      }
      return found.toSorted()
    }
    const searches = [
      'alpha',
      'alphabet',
      'alp be',
      '日',
      '日本',
      'gro',
      'src/ma',
      'a_b x',
      'nai',
      'meteo кот',
      'nothing',
    ]
    await allIndexed()
    for (const owner of people)
      for (const [index, q] of searches.entries())
        // In pages, for the first of them.
        expect([q, await indexed(owner, q, index === 0 ? '7' : '50')]).toEqual([q, naive(owner, q)])
  })
})
