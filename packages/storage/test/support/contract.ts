/**
 * The contract of every sessions store. `open` returns an empty store and, if possible, a second
 * opening of the same data for reading. The suite closes both.
 */
import { makeMeta } from '@sandlot/shared/chat/event-meta'
import { metaOf, seqOf } from '@sandlot/shared/chat/events'
import type { MetaFields } from '@sandlot/shared/chat/event-meta'
import type { SessionEvent } from '@sandlot/shared/chat/events'
import { RETAINED_FOR_EVER } from '@sandlot/shared/admin/retention'
import fc from 'fast-check'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import type { SessionReader, SessionRecords, SessionStore } from '../../src/sessions/store.ts'
import type { LogReads } from '../../src/sessions/log.ts'
import type { OutputReads, OutputRows } from '../../src/sessions/outputs.ts'
import type { SessionRows } from '../../src/sessions/sessions.ts'
import type { SessionRow } from '../../src/tables/records.ts'
import { testRules } from './rules-contract.ts'
import { testSecrets } from './secrets-contract.ts'
import { testShares } from './shares-contract.ts'
import { testSpent } from './spent-contract.ts'
import { testUsage } from './usage-contract.ts'

export interface OpenedStore {
  store: SessionStore
  reader: SessionReader
  /** Removes the data. Called after both are closed. */
  remove: () => void | Promise<void>
}

const AT = 1_790_000_000_000

export function message(text: string, fields: MetaFields = {}, at = AT): SessionEvent {
  return {
    sessionUpdate: 'agent_message_chunk',
    messageId: 'm',
    content: { type: 'text', text },
    _meta: makeMeta(fields, at),
  }
}

function call(toolCallId: string): SessionEvent {
  return {
    sessionUpdate: 'tool_call',
    toolCallId,
    title: 'Run',
    name: 'run_shell_command',
    kind: 'execute',
    status: 'pending',
    rawInput: {},
    _meta: makeMeta({}, AT),
  }
}

const bytes = (text: string): Uint8Array => new TextEncoder().encode(text)
const text = (data: Uint8Array): string => new TextDecoder().decode(data)

export function testSessionStore(name: string, open: () => Promise<OpenedStore>): void {
  describe(`sessions store: ${name}`, () => {
    let opened: OpenedStore
    let store: SessionStore
    beforeEach(async () => {
      opened = await open()
      store = opened.store
      await store.sessions.create({ id: 's', userId: 'ann', cwd: '/workspace', mode: 'auto-edit', at: AT })
    })
    afterEach(async () => {
      await opened.reader.close()
      await store.close()
      await opened.remove()
    })

    testShares(() => opened)

    test('who is removed is known as that, and leaves nothing but sessions and what was spent', async () => {
      const rule = { id: 'r', effect: 'allow', match: { shell: 'ls *' }, createdAt: AT } as const
      const secret = { name: 'TOKEN', keyId: 'k', sealed: bytes('x'), updatedAt: AT }
      for (const user of ['ann', 'bob']) {
        await store.people.known.put(user, { email: `${user}@example.org`, teams: [] })
        await store.people.rules.add(user, { ...rule, id: `r-${user}` })
        await store.people.secrets.put(user, secret)
        await store.people.instructions.put(user, 'Be brief.', AT)
        await store.people.instructions.changeFiles(user, AT, () => '[]')
        await store.log.append('s', [message('x')], {
          notifications: [{ userId: user, kind: 'shared', ref: 'r' }],
        })
      }
      await store.people.known.remove('ann', AT)
      await store.people.known.remove('ann', AT + 1)
      const left = async (user: string) => [
        (await store.people.known.all()).get(user)?.email,
        (await store.people.rules.list(user)).length,
        (await store.people.secrets.names(user)).length,
        await store.people.instructions.get(user),
        await store.people.instructions.files(user),
      ]
      expect(await left('ann')).toEqual([undefined, 0, 0, '', ''])
      expect(await left('bob')).toEqual(['bob@example.org', 1, 1, 'Be brief.', '[]'])
      expect(await store.people.known.removed()).toEqual(new Set(['ann']))
      expect(await store.notifications.after(0, 10)).toMatchObject([{ userId: 'bob' }])
      expect(await store.sessions.get('s')).toMatchObject({ userId: 'ann' })
    })

    test('a user’s instructions and the texts of their workspace change apart', async () => {
      const { instructions } = store.people
      const both = async () => [await instructions.get('ann'), await instructions.files('ann')]
      expect(await both()).toEqual(['', ''])
      await instructions.changeFiles('ann', AT, () => '["a"]')
      expect(await both()).toEqual(['', '["a"]'])
      await instructions.put('ann', 'Be brief.', AT)
      await instructions.changeFiles('ann', AT, () => '["b"]')
      expect(await both()).toEqual(['Be brief.', '["b"]'])
      await instructions.put('ann', '', AT)
      expect(await both()).toEqual(['', '["b"]'])
    })

    test('changes of workspace texts at once each start with the one before', async () => {
      const { instructions } = store.people
      const names = Array.from({ length: 20 }, (_, index) => String.fromCharCode(97 + index))
      const add = (name: string) => instructions.changeFiles('ann', AT, (files) => files + name)
      await Promise.all(names.map(add))
      await Promise.all(names.map(add))
      const stored = await instructions.files('ann')
      expect(Array.from(stored).toSorted()).toEqual(names.flatMap((name) => [name, name]))
    })

    test('retention finds what is old, and takes outputs, images and usage alone', async () => {
      const { retention } = store.admin
      const who = { id: 'ann', name: 'Ann' }
      const line = { who, what: 'retention_changed' } as const
      expect(await retention.get()).toMatchObject({ revision: 0, last: null })
      expect(await retention.put({ ...RETAINED_FOR_EVER, chats: 30 }, 0, line)).toBe(true)
      expect(await retention.put({ ...RETAINED_FOR_EVER, chats: 1 }, 0, line)).toBe(false)
      await retention.ran(AT, { chats: 3 })
      expect(await opened.reader.admin.retention.get()).toMatchObject({
        days: { chats: 30, audit: null },
        revision: 1,
        last: { at: AT, removed: { chats: 3 } },
      })
      const image = { type: 'image', mimeType: 'image/png', data: 'A'.repeat(9_000) } as const
      await store.log.append('s', [
        { ...message('x'), sessionUpdate: 'user_message_chunk', messageId: 'm', content: image },
      ])
      await store.outputs.append('s', 'c', 0, bytes('x'.repeat(1_000)))
      const usage = { promptId: 'p', model: 'm', input: 1, output: 1, cached: 0, reasoning: 0, at: AT }
      await store.log.append('s', [], { usage })
      const old = Date.now() + 1e9
      for (const kind of ['chats', 'outputs', 'images'] as const) {
        const [chat, ...more] = await retention.aged(kind, old, 10)
        expect([chat?.id, more]).toEqual(['s', []])
        expect(await retention.aged(kind, 1, 10)).toEqual([])
        expect(await retention.aged(kind, old, 10, chat)).toEqual([])
      }
      expect(await retention.imagesOf('s', old)).toMatchObject({ count: 1 })
      expect(await retention.removeImages('s', old)).toBe(1)
      expect(await retention.removeOutputs('s', old)).toBe(1)
      expect(await store.outputs.get('s', 'c')).toMatchObject({ storedBytes: 0, removed: true })
      expect(JSON.stringify(await store.log.read('s'))).not.toContain('A'.repeat(40))
      expect(await retention.aged('images', old, 10)).toEqual([])
      expect(await retention.aged('outputs', old, 10)).toEqual([])
      expect(await retention.usageBefore(old)).toMatchObject({ count: 1, oldest: AT })
      expect(await retention.removeUsage(old + 1e8)).toBeGreaterThan(0)
      expect(await retention.removeUsage(old + 1e8)).toBe(0)
      await store.chats.mark('bob', { sessionIds: ['s'], pinned: true }, AT)
      expect(await retention.aged('chats', old, 10)).toEqual([])
      expect(await store.admin.audit.page({ text: 'RETENTION', limit: 5 })).toMatchObject([
        { what: 'retention_changed' },
      ])
      expect(await opened.reader.admin.audit.olderThan(old)).toMatchObject({ count: 1 })
      expect(await store.admin.audit.removeOlder(old, 10)).toBe(1)
      expect(await opened.reader.admin.audit.check()).toMatchObject({
        lines: 0,
        anchor: { seq: 1 },
        problems: [],
      })
      await store.admin.audit.write(line)
      expect(await opened.reader.admin.audit.check()).toMatchObject({
        lines: 1,
        head: { seq: 2 },
        problems: [],
      })
    })

    test('of a purged person no usage is left', async () => {
      await store.log.append('s', [], {
        usage: { promptId: 'p', model: 'm', input: 1, output: 1, cached: 0, reasoning: 0, at: AT },
      })
      await store.sessions.remove('s')
      await store.people.known.purge('ann')
      expect((await store.usage.spentSince('ann', 0, AT)).turns).toBe(0)
    })

    test('notices are there with what happened or not at all, and their numbers grow over what was pruned', async () => {
      const approval = { userId: 'ann', kind: 'approval', ref: 'c', about: 'run_\0shell_command' } as const
      await store.log.append('s', [message('ask')], {
        approvalAsked: { toolCallId: 'c', askedAt: AT, expiresAt: AT + 1_000 },
        notifications: [approval, { userId: 'bob', kind: 'mentioned', ref: 'm', about: 'Ann' }],
      })
      const refused = store.log.append('s', [message('ask again')], {
        approvalAsked: { toolCallId: 'c', askedAt: AT, expiresAt: AT + 1_000 },
        notifications: [approval],
      })
      await expect(refused).rejects.toMatchObject({ code: 'conflict' })
      const about = { at: AT, sessionId: 's', open: true }
      const first = (await opened.reader.notifications.after(0, 1))[0]?.id ?? 0
      const [asked, mentioned] = [
        { ...about, id: first, userId: 'ann', kind: 'approval', ref: 'c', about: 'run_shell_command' },
        { ...about, id: first + 1, userId: 'bob', kind: 'mentioned', ref: 'm', about: 'Ann' },
      ]
      expect(await opened.reader.notifications.after(0, 10)).toEqual([asked, mentioned])
      expect(await opened.reader.notifications.after(0, 1)).toEqual([asked])
      expect(await opened.reader.notifications.after(first, 10)).toEqual([mentioned])

      await store.log.append('s', [message('answered')], {
        approvalAnswered: { toolCallId: 'c', answeredAt: AT, optionId: 'allow', by: 'user' },
      })
      expect(await opened.reader.notifications.after(0, 1)).toEqual([{ ...asked, open: false }])

      const later = AT + 25 * 60 * 60_000
      const ended = { userId: 'ann', kind: 'ended', ref: 'p' } as const
      await store.log.append('s', [message('end', {}, later)], { notifications: [ended] })
      expect(await opened.reader.notifications.after(0, 10)).toEqual([
        { ...about, ...ended, id: expect.any(Number), at: later, about: undefined },
      ])
      expect(await opened.reader.notifications.after(first + 1, 10)).toHaveLength(1)
      await store.sessions.remove('s')
      expect(await opened.reader.notifications.after(0, 10)).toEqual([])
    })

    describe('sessions', () => {
      test('a new session has no events and nothing that runs', async () => {
        expect(await store.sessions.get('s')).toEqual({
          id: 's',
          userId: 'ann',
          cwd: '/workspace',
          title: null,
          mode: 'auto-edit',
          createdAt: AT,
          updatedAt: AT,
          lastSeq: 0,
          runningPromptId: null,
          waiting: 0,
        })
        expect(await opened.reader.sessions.get('s')).toEqual(await store.sessions.get('s'))
        expect(await store.sessions.get('none')).toBeUndefined()
      })

      test('begins with the events that it was made with', async () => {
        const row = { id: 'with', userId: 'ann', cwd: '/workspace', mode: 'manual', at: AT } as const
        const { owned, ...made } = await store.sessions.create(row, [message('one'), message('two')])
        expect(made).toMatchObject({ id: 'with', lastSeq: 2 })
        expect(await store.sessions.get('with')).toEqual(made)
        expect(await store.log.read('with')).toEqual(owned?.events)
        expect(owned?.events.map(seqOf)).toEqual([1, 2])
        await expect(store.sessions.create(row, [message('three')])).rejects.toMatchObject({
          code: 'conflict',
        })
        expect(await store.log.read('with')).toHaveLength(2)
      })

      test('belongs to its creator until another one takes it over', async () => {
        const row = { id: 'own', userId: 'ann', cwd: '/workspace', mode: 'manual', at: AT } as const
        const { owned } = await store.sessions.create(row)
        await store.log.append('own', [message('one')], {}, owned?.epoch, 0)
        await store.log.takeOver('own')
        const late = store.log.append('own', [message('two')], {}, owned?.epoch, 1)
        await expect(late).rejects.toMatchObject({ code: 'not_owner' })
        expect(await store.log.read('own')).toHaveLength(1)
      })

      test('an id is taken once', async () => {
        const again = store.sessions.create({ id: 's', userId: 'bob', cwd: '/', mode: 'yolo', at: AT })
        await expect(again).rejects.toMatchObject({ code: 'conflict' })
        expect((await store.sessions.get('s'))?.userId).toBe('ann')
      })

      test('lists one user, newest first, and pages meet without losing rows of one millisecond', async () => {
        for (const [id, at] of [
          ['a', 5],
          ['b', 3],
          ['c', 3],
          ['d', 3],
          ['e', 1],
        ] as const) {
          await store.sessions.create({ id, userId: 'bob', cwd: '/workspace', mode: 'manual', at })
        }
        expect((await store.sessions.list('bob')).map((row) => row.id)).toEqual(['a', 'b', 'c', 'd', 'e'])
        const first = await opened.reader.sessions.list('bob', { limit: 2 })
        expect(first.map((row) => row.id)).toEqual(['a', 'b', 'c', 'd'])
        const next = await store.sessions.list('bob', { limit: 2, before: first.at(-1)?.updatedAt ?? 0 })
        expect(next.map((row) => row.id)).toEqual(['e'])
        expect(await store.sessions.list('nobody')).toEqual([])
      })

      test('sessions are found by a part of their names, which means itself', async () => {
        const titles = ['Plans for May', '100% of it', '100 of it', 'a_b', 'aXb', 'back\\slash', null]
        for (const [index, title] of titles.entries()) {
          const id = `t${index}`
          await store.sessions.create({
            id,
            userId: 'cas',
            cwd: '/workspace',
            mode: 'manual',
            at: AT + index,
          })
          if (title !== null) await store.log.append(id, [message('hi')], { title })
        }
        const found = async (title: string, userId = 'cas') =>
          (await opened.reader.sessions.list(userId, { title })).map((row) => row.title)
        expect(await found('PLANS f')).toEqual(['Plans for May'])
        expect(await found('100%')).toEqual(['100% of it'])
        expect(await found('a_b')).toEqual(['a_b'])
        expect(await found('\\')).toEqual(['back\\slash'])
        expect(await found('nothing like it')).toEqual([])
        expect(await found('plans', 'ann')).toEqual([])
      })

      test('deleting takes everything of the session and nothing else', async () => {
        await store.sessions.create({ id: 't', userId: 'ann', cwd: '/workspace', mode: 'manual', at: AT })
        for (const id of ['s', 't']) {
          await store.log.append(id, [message('hi')], {
            submission: { userId: 'ann', requestId: `r-${id}`, promptId: 'p' },
            approvalAsked: { toolCallId: 'c', askedAt: AT, expiresAt: AT },
            outcome: {
              promptId: 'p',
              callId: 'c',
              tool: 'echo',
              status: 'completed',
              runMs: 1.5,
              waitMs: 0,
              at: AT,
            },
            usage: { promptId: 'p', model: 'm', input: 1, output: 1, cached: 0, reasoning: 0, at: AT },
          })
          await store.outputs.append(id, 'c', 0, bytes('out'))
        }
        await store.sessions.remove('s')
        await store.sessions.remove('s')
        expect(await store.sessions.get('s')).toBeUndefined()
        expect(await store.log.read('s')).toEqual([])
        expect(await store.outputs.get('s', 'c')).toBeUndefined()
        expect(await store.outputs.read('s', 'c', 0, 10)).toHaveLength(0)
        expect(await store.approvals.get('s', 'c')).toBeUndefined()
        expect(await store.log.findSubmission('ann', 'r-s')).toBeUndefined()
        expect(await store.log.read('t')).toHaveLength(1)
        // Usage survives the removal of its session.
        expect(await store.usage.spentSince('ann', AT, AT)).toMatchObject({ turns: 2, tokens: 4 })
        expect(text(await store.outputs.read('t', 'c', 0, 10))).toBe('out')
        expect(await store.log.findSubmission('ann', 'r-t')).toEqual({ sessionId: 't', promptId: 'p' })
        await store.sessions.create({ id: 's', userId: 'bob', cwd: '/', mode: 'yolo', at: AT })
        expect((await store.log.append('s', [message('new')])).map(seqOf)).toEqual([1])
      })
    })

    test('the line keeps what waits in its order, and when each person had their last turn', async () => {
      const waits = { person: 'ann', model: 'm', served: 0 }
      await store.promptQueue.put({ ...waits, promptId: 'p2', joined: 2 })
      await store.promptQueue.put({ ...waits, promptId: 'p1', joined: 1 })
      await store.promptQueue.put({ ...waits, promptId: 'p3', person: 'bob', joined: 3 })
      await store.promptQueue.put({ ...waits, promptId: 'p2', joined: 2, model: 'other' })
      await store.promptQueue.remove('p1', 'ann', 4)
      expect(await store.promptQueue.all()).toEqual([
        { promptId: 'p2', person: 'ann', model: 'other', joined: 2, served: 4 },
        { promptId: 'p3', person: 'bob', model: 'm', joined: 3, served: 0 },
      ])
    })

    test('what administrators set has revisions: of two changes at once of one, one is refused', async () => {
      const endpoint = { name: 'Ours', baseUrl: 'https://m.test/v1', models: [{ name: 'm' }] }
      const server = {
        name: 'ours',
        enabled: true,
        connection: { kind: 'sandbox' as const, command: 'serve', args: [], env: [] },
        off: [],
        readOnly: [],
      }
      const subject = { kind: 'team', id: 't' } as const
      const rows = [
        (revision: number) => store.people.modelEndpoints.put({ id: 'e', revision, endpoint }, AT),
        (revision: number) => store.people.mcpServers.put({ id: 'm', ownerId: 'ann', revision, server }, AT),
        (revision: number) => store.people.settings.put({ subject, settings: {}, revision }, AT),
      ]
      for (const put of rows)
        for (const revision of [1, 2, 3]) {
          const both = await Promise.all([put(revision), put(revision)])
          expect(both.filter(Boolean)).toHaveLength(1)
        }
      expect(await store.people.modelEndpoints.all()).toMatchObject([{ id: 'e', revision: 3, endpoint }])
      expect(await store.people.mcpServers.all()).toEqual([{ id: 'm', ownerId: 'ann', revision: 3, server }])
      expect(await store.people.settings.all()).toMatchObject([{ subject, revision: 3 }])
      const seed = [{ subject: { kind: 'person', id: 'bob' } as const, settings: {} }]
      const seeded = [store.people.settings.seed(seed, AT), store.people.settings.seed(seed, AT)]
      expect((await Promise.all(seeded)).filter(Boolean)).toHaveLength(1)
      await store.people.modelEndpoints.remove('e')
      await store.people.mcpServers.remove('m')
      await store.people.settings.remove(subject)
      expect(await store.people.modelEndpoints.all()).toEqual([])
      expect(await store.people.mcpServers.all()).toEqual([])
      expect(await store.people.settings.all()).toMatchObject([{ revision: 1 }])
    })

    test('a copy has the log and the outputs; of one whose source goes meanwhile nothing is left', async () => {
      await store.log.append('s', [call('c'), message('said')])
      await store.outputs.append('s', 'c', 0, bytes('x'.repeat(600_000)))
      const fork = { id: 't', userId: 'bob', cwd: '/workspace', mode: 'manual', title: 'T', at: AT } as const
      const events = await store.log.read('s')
      expect(await store.sessions.fork('s', fork, events)).toMatchObject({ userId: 'bob', lastSeq: 2 })
      expect(await store.log.read('t')).toEqual(events)
      expect(await store.outputs.read('t', 'c', 599_990, 700_000)).toHaveLength(10)
      const copied = store.sessions.fork('s', { ...fork, id: 'u' }, events)
      const refused = expect(copied).rejects.toMatchObject({ code: 'not_found' })
      await store.sessions.remove('s')
      await refused
      expect(await store.log.read('u')).toEqual([])
      expect(await store.log.read('t')).toEqual(events)
    })

    describe('rules', () => testRules(() => store))
    describe('usage', () => testUsage(() => store))
    describe('secrets', () => testSecrets(() => store))
    testSessionRecords(
      () => store,
      () => opened.reader,
    )
  })
}

/** A store of sessions only, without users. */
export type RecordsStore = SessionRecords & {
  outputs: Pick<OutputRows, 'get'>
  sessions: Pick<SessionRows, 'create' | 'get' | 'remove' | 'unfinished'> & {
    list: (userId: string, page?: { waiting?: boolean }) => Promise<SessionRow[]>
  }
}

/** The part of the contract for what the runner of a session needs. `store` gives one with a session `s` of `ann`. */
export function testSessionRecords(
  store: () => RecordsStore,
  reader: () => { log: LogReads; outputs: Pick<OutputReads, 'read'> },
): void {
  describe('events', () => {
    test('are numbered densely per session and read back as they were', async () => {
      await store().sessions.create({ id: 't', userId: 'ann', cwd: '/workspace', mode: 'manual', at: AT })
      const stored = await store().log.append('s', [message('one'), message('two')])
      await store().log.append('t', [message('other')])
      stored.push(...(await store().log.append('s', [message('\u{1f600} \ud800 \0 \u2028')])))
      expect(stored.map(seqOf)).toEqual([1, 2, 3])
      expect(await store().log.read('s')).toEqual(stored)
      expect(await reader().log.read('s', 1)).toEqual(stored.slice(1))
      expect(await store().log.read('s', 1, 1)).toEqual(stored.slice(1, 2))
      expect(await store().log.read('s', 3)).toEqual([])
      expect((await store().sessions.get('s'))?.lastSeq).toBe(3)
    })

    test('an old number is replaced', async () => {
      const [copy] = await store().log.append('s', [message('from elsewhere', { promptId: 'p' })])
      expect(copy).toBeDefined()
      if (copy === undefined) return
      const again = await store().log.append('s', [copy])
      expect(again.map(seqOf)).toEqual([2])
      expect(seqOf(copy)).toBe(1)
    })

    test('many appends at once stay dense', async () => {
      const appended = await Promise.all(
        Array.from({ length: 50 }, (_, index) =>
          store().log.append('s', [message(`a${index}`), message(`b${index}`)]),
        ),
      )
      const seqs = appended.flat().map((event) => seqOf(event) ?? 0)
      expect(seqs.toSorted((a, b) => a - b)).toEqual(Array.from({ length: 100 }, (_, index) => index + 1))
      for (const [first, second] of appended) {
        expect(second && seqOf(second)).toBe(((first && seqOf(first)) ?? 0) + 1)
      }
    })

    test('more than one statement can hold', async () => {
      const stored = await store().log.append(
        's',
        Array.from({ length: 2_500 }, (_, index) => message(String(index))),
      )
      expect(seqOf(stored[2_499] ?? message(''))).toBe(2_500)
      expect(await store().log.read('s', 2_499)).toEqual(stored.slice(2_499))
    })

    test('a live event is a programming error and stores nothing', async () => {
      await expect(
        store().log.append('s', [message('a'), message('b', { live: true, offset: 0 })]),
      ).rejects.toThrow(TypeError)
      expect(await store().log.read('s')).toEqual([])
    })

    test('a session that does not exist is not found', async () => {
      await expect(store().log.append('none', [message('a')])).rejects.toMatchObject({ code: 'not_found' })
      await expect(store().log.append('none', [], { title: 'x' })).rejects.toMatchObject({
        code: 'not_found',
      })
    })

    test('the session is as new as its newest event', async () => {
      await store().log.append('s', [message('late', {}, AT + 500), message('early', {}, AT + 100)])
      expect((await store().sessions.get('s'))?.updatedAt).toBe(AT + 500)
      await store().log.append('s', [message('clock went back', {}, AT - 1_000)], { title: 'T' })
      expect((await store().sessions.get('s'))?.updatedAt).toBe(AT + 500)
    })
  })

  describe('effects', () => {
    test('title, mode and the running prompt change with the events', async () => {
      await store().log.append('s', [message('a')], {
        title: 'Prim\0es',
        mode: 'yolo',
        runningPromptId: 'p1',
      })
      expect(await store().sessions.get('s')).toMatchObject({
        title: 'Primes',
        mode: 'yolo',
        runningPromptId: 'p1',
      })
      expect((await store().sessions.unfinished()).map((row) => row.id)).toEqual(['s'])
      await store().log.append('s', [message('b')])
      expect((await store().sessions.get('s'))?.runningPromptId).toBe('p1')
      await store().log.append('s', [message('c')], { runningPromptId: null })
      expect(await store().sessions.get('s')).toMatchObject({ title: 'Primes', runningPromptId: null })
      expect(await store().sessions.unfinished()).toEqual([])
    })

    test('a request id is submitted once per user; the second undoes its whole transaction', async () => {
      const submission = { userId: 'ann', requestId: 'r', promptId: 'p1' }
      await store().log.append('s', [message('a')], { submission })
      const again = store().log.append('s', [message('b')], {
        submission: { ...submission, promptId: 'p2' },
        runningPromptId: 'p2',
      })
      await expect(again).rejects.toMatchObject({ code: 'conflict' })
      expect(await store().log.findSubmission('ann', 'r')).toEqual({ sessionId: 's', promptId: 'p1' })
      expect(await store().log.findSubmission('bob', 'r')).toBeUndefined()
      expect(await store().sessions.get('s')).toMatchObject({ lastSeq: 1, runningPromptId: null })
      expect((await store().log.append('s', [message('c')])).map(seqOf)).toEqual([2])
    })

    test('the first answer to an approval wins', async () => {
      await store().log.append('s', [message('ask')], {
        approvalAsked: { toolCallId: 'c', askedAt: AT, expiresAt: AT + 1_000 },
      })
      const waiting = {
        sessionId: 's',
        toolCallId: 'c',
        askedAt: AT,
        expiresAt: AT + 1_000,
        answeredAt: null,
        optionId: null,
        by: null,
      }
      expect(await store().approvals.get('s', 'c')).toEqual(waiting)
      expect((await store().sessions.list('ann'))[0]?.waiting).toBe(1)
      expect(await store().sessions.list('ann', { waiting: true })).toHaveLength(1)

      const answer = (by: string, optionId: string | null) =>
        store().log.append('s', [message(`answered by ${by}`)], {
          approvalAnswered: { toolCallId: 'c', answeredAt: AT + 5, optionId, by },
        })
      const results = await Promise.allSettled([answer('user', 'allow'), answer('expiry', null)])
      expect(results.map((result) => result.status)).toEqual(['fulfilled', 'rejected'])
      expect(results[1]).toMatchObject({ reason: { code: 'conflict' } })
      expect(await store().approvals.get('s', 'c')).toEqual({
        ...waiting,
        answeredAt: AT + 5,
        optionId: 'allow',
        by: 'user',
      })
      expect(await store().sessions.list('ann', { waiting: true })).toEqual([])
      expect(await store().sessions.get('s')).toMatchObject({ waiting: 0, lastSeq: 2 })
    })

    test('what an earlier owner writes is refused, events and output alike, and changes nothing', async () => {
      await store().log.append('s', [message('a')])
      const first = await store().log.takeOver('s')
      expect(first.events.map(seqOf)).toEqual([1])
      await store().log.append('s', [message('b')], {}, first.epoch)
      await store().outputs.append('s', 'c', 0, bytes('one'), first.epoch)
      const second = await store().log.takeOver('s')
      expect(second.epoch).toBeGreaterThan(first.epoch)
      expect(second.events.map(seqOf)).toEqual([1, 2])

      const refused = { name: 'StorageError', code: 'not_owner' }
      const effects = { title: 'mine' }
      await expect(store().log.append('s', [message('x')], effects, first.epoch)).rejects.toMatchObject(
        refused,
      )
      await expect(store().log.checkOwner('s', first.epoch)).rejects.toMatchObject(refused)
      const written = await Promise.allSettled([
        store().outputs.append('s', 'c', 3, bytes('old'), first.epoch),
        store().outputs.append('s', 'c', 3, bytes('new'), second.epoch),
        store().outputs.append('s', 'd', 0, bytes('old'), first.epoch),
      ])
      expect(written).toMatchObject([{ reason: refused }, { status: 'fulfilled' }, { reason: refused }])
      expect(text(await store().outputs.read('s', 'c', 0, 10))).toBe('onenew')
      expect(await store().outputs.get('s', 'd')).toBeUndefined()
      expect(await store().sessions.get('s')).toMatchObject({ title: null, lastSeq: 2 })
      await store().log.checkOwner('s', second.epoch)
      expect((await store().log.append('s', [message('y')], {}, second.epoch)).map(seqOf)).toEqual([3])
      await expect(store().log.takeOver('none')).rejects.toMatchObject({ code: 'not_found' })
    })

    test('an unrequested answer is not found, and an approval is asked once', async () => {
      const approvalAnswered = { toolCallId: 'x', answeredAt: AT, optionId: null, by: 'user' }
      await expect(store().log.append('s', [message('a')], { approvalAnswered })).rejects.toMatchObject({
        code: 'not_found',
      })
      const approvalAsked = { toolCallId: 'x', askedAt: AT, expiresAt: AT }
      await store().log.append('s', [], { approvalAsked })
      await expect(store().log.append('s', [], { approvalAsked })).rejects.toMatchObject({ code: 'conflict' })
      expect((await store().sessions.get('s'))?.lastSeq).toBe(0)
    })

    test('a call has one outcome', async () => {
      const outcome = {
        promptId: 'p',
        at: AT,
        callId: 'c',
        tool: 'echo',
        status: 'failed',
        reason: 'timeout',
        runMs: 1,
        waitMs: 2,
      } as const
      await store().log.append('s', [message('a')], { outcome })
      await expect(store().log.append('s', [message('b')], { outcome })).rejects.toMatchObject({
        code: 'conflict',
      })
      expect((await store().sessions.get('s'))?.lastSeq).toBe(1)
    })
  })

  describe('what was spent', () => testSpent(store))

  describe('output', () => {
    test('bytes are stored from 0 on; what is stored already is ignored', async () => {
      await store().outputs.append('s', 'c', 0, bytes('hello '))
      await store().outputs.append('s', 'c', 0, bytes('hello world'))
      await store().outputs.append('s', 'c', 2, bytes('llo'))
      expect(text(await reader().outputs.read('s', 'c', 0, 100))).toBe('hello world')
      expect(text(await store().outputs.read('s', 'c', 6, 9))).toBe('wor')
      expect(await store().outputs.read('s', 'c', 11, 20)).toHaveLength(0)
      expect(await store().outputs.read('s', 'c', 5, 5)).toHaveLength(0)
      expect(await store().outputs.get('s', 'c')).toEqual({
        sessionId: 's',
        callId: 'c',
        storedBytes: 11,
        totalBytes: 11,
        lines: 0,
        complete: false,
      })
    })

    test('a hole is an error for the piece that leaves it, not for its neighbours', async () => {
      const results = await Promise.allSettled([
        store().outputs.append('s', 'c', 0, bytes('ab')),
        store().outputs.append('s', 'c', 3, bytes('d')),
        store().outputs.append('s', 'c', 2, bytes('c')),
        store().outputs.append('none', 'c', 0, bytes('x')),
      ])
      expect(results.map((result) => result.status)).toEqual([
        'fulfilled',
        'rejected',
        'fulfilled',
        'rejected',
      ])
      expect(results[1]).toMatchObject({ reason: { code: 'bad_request' } })
      expect(results[3]).toMatchObject({ reason: { code: 'not_found' } })
      expect(text(await store().outputs.read('s', 'c', 0, 9))).toBe('abc')
    })

    test('property: pieces of any length, some repeated, are the same bytes', async () => {
      const cuts = fc.array(fc.tuple(fc.nat(700_000), fc.nat(9)), { maxLength: 8 })
      const all = Buffer.from(Array.from({ length: 700_000 }, (_, at) => (at * 7) % 251))
      let run = 0
      await fc.assert(
        fc.asyncProperty(cuts, async (at) => {
          const callId = `cut_${run++}`
          const ends = [...at.toSorted(([a], [b]) => a - b), [all.length, 0] as const]
          let from = 0
          const stored = ends.map(([end, again]) => {
            const start = Math.max(0, from - again)
            from = end
            return store().outputs.append('s', callId, start, all.subarray(start, end))
          })
          await Promise.all(stored)
          expect(all.equals(await store().outputs.read('s', callId, 0, all.length + 1))).toBe(true)
        }),
        { numRuns: 10 },
      )
    })

    test('final counts may be larger than what is stored, and come before or after the bytes', async () => {
      await store().log.append('s', [], { output: { callId: 'c', totalBytes: 500, lines: 7 } })
      await store().outputs.append('s', 'c', 0, bytes('abc'))
      expect(await store().outputs.get('s', 'c')).toMatchObject({
        storedBytes: 3,
        totalBytes: 500,
        lines: 7,
        complete: true,
      })
      await store().log.append('s', [], { output: { callId: 'silent', totalBytes: 0, lines: 0 } })
      expect(await store().outputs.get('s', 'silent')).toMatchObject({ storedBytes: 0, complete: true })
      expect(await store().outputs.get('s', 'none')).toBeUndefined()
    })

    test('a large output is read by ranges across chunks', async () => {
      const large = new Uint8Array(1_500_000).map((_, index) => (index * 7 + (index >> 8)) & 255)
      await store().outputs.append('s', 'c', 0, large)
      await store().outputs.append('s', 'c', 1_500_000, large.subarray(0, 10))
      for (const [from, to] of [
        [0, 10],
        [262_100, 262_200],
        [262_144, 262_145],
        [100, 1_400_000],
        [1_499_990, 1_500_100],
      ] as const) {
        const expected = Buffer.concat([large, large.subarray(0, 10)]).subarray(from, to)
        expect(Buffer.from(await store().outputs.read('s', 'c', from, to)).equals(expected)).toBe(true)
      }
    })

    test('property: any pieces that overlap or repeat, at once or in turn, give the same bytes', async () => {
      let run = 0
      const piece = fc.record({ back: fc.nat(20), length: fc.nat(30), wait: fc.boolean() })
      await fc.assert(
        fc.asyncProperty(fc.array(piece, { maxLength: 12 }), async (pieces) => {
          const call = `p${run++}`
          const whole = Uint8Array.from({ length: 400 }, (_, index) => index & 255)
          let end = 0
          const pending: Promise<unknown>[] = []
          for (const { back, length, wait } of pieces) {
            const offset = Math.max(0, end - back)
            pending.push(store().outputs.append('s', call, offset, whole.subarray(offset, offset + length)))
            end = Math.max(end, offset + length)
            if (wait) await Promise.all(pending)
          }
          await Promise.all(pending)
          expect(await store().outputs.read('s', call, 0, 1_000)).toEqual(whole.slice(0, end))
        }),
        { numRuns: 30 },
      )
    })
  })

  test('a reader sees what is stored, and events keep what is private to them', async () => {
    const [event] = await store().log.append('s', [
      message('x', { promptId: 'p', turn: 2, usage: { input: 3 } }),
    ])
    const [read] = await reader().log.read('s')
    expect(read && metaOf(read)).toEqual(event && metaOf(event))
    expect(read && metaOf(read)).toMatchObject({ promptId: 'p', turn: 2, seq: 1, at: AT })
  })
}
