/** The contract of users' rules in every store. Part of the sessions contract. */
import { makeSandlotEvent } from '@sandlot/shared/chat/events'
import { expect, test } from 'vitest'
import type { UserRule } from '../../src/tables/records.ts'
import type { SessionStore } from '../../src/sessions/store.ts'

const MAX_RULES = 1_000

const rule = (id: string, more: Partial<UserRule> = {}): UserRule => ({
  id,
  effect: 'allow',
  match: { shell: 'npm test *' },
  createdAt: 1,
  ...more,
})

/** `store` gives one with a session `s` of `ann`. */
export function testRules(store: () => SessionStore): void {
  test('a rule is kept for one person, whole, until it is revoked', async () => {
    const { rules } = store().people
    const written = rule('r1', {
      match: { file: 'secrets/**', access: 'read' },
      effect: 'deny',
      expiresAt: 99,
    })
    await rules.add('ann', written)
    await rules.add('ann', rule('r2', { createdAt: 2 }))
    await rules.add('bob', rule('r3'))
    expect(await rules.list('ann')).toEqual([
      { ...written, origin: 'user' },
      { ...rule('r2', { createdAt: 2 }), origin: 'user' },
    ])
    expect(await rules.revoke('ann', 'r3')).toBe(false)
    expect(await rules.revoke('ann', 'r1')).toBe(true)
    expect(await rules.revoke('ann', 'r1')).toBe(false)
    expect((await rules.list('ann')).map(({ id }) => id)).toEqual(['r2'])
    expect((await rules.list('bob')).map(({ id }) => id)).toEqual(['r3'])
  })

  test('a rule and the answer it comes from are one transaction', async () => {
    const asked = { toolCallId: 'c', askedAt: 1, expiresAt: 2 }
    const event = makeSandlotEvent({ type: 'stop_asked' }, {}, 1)
    await store().log.append('s', [event], { approvalAsked: asked })
    const answered = { toolCallId: 'c', answeredAt: 2, optionId: 'o', by: 'user' }
    await store().log.append('s', [event], { approvalAnswered: answered, rules: [rule('r')] })
    expect(await store().people.rules.list('ann')).toHaveLength(1)
    const again = store().log.append('s', [event], { approvalAnswered: answered, rules: [rule('r2')] })
    await expect(again).rejects.toMatchObject({ code: 'conflict' })
    expect(await store().people.rules.list('ann')).toHaveLength(1)
  })

  test('an id is taken once, a person has a bounded number', async () => {
    const { rules } = store().people
    await rules.add('ann', rule('r'))
    await expect(rules.add('bob', rule('r'))).rejects.toMatchObject({ code: 'conflict' })
    const many = Array.from({ length: MAX_RULES - 1 }, (_, at) => rule(`m${at}`))
    await store().log.append('s', [makeSandlotEvent({ type: 'stop_asked' }, {}, 1)], { rules: many })
    await expect(rules.add('ann', rule('one too many'))).rejects.toMatchObject({ code: 'too_large' })
    expect(await rules.list('ann')).toHaveLength(MAX_RULES)
  })

  test('a rule of a prompt is over when that prompt is not the one that runs; one of a session with the session', async () => {
    const { rules } = store().people
    const start = (promptId: string | null) =>
      store().log.append('s', [makeSandlotEvent({ type: 'stop_asked' }, {}, 1)], {
        runningPromptId: promptId,
      })
    const ids = async () => (await rules.list('ann')).map(({ id }) => id)
    await start('p1')
    const once = rule('once', { match: { host: 'a.test:443' }, endsWith: { sessionId: 's', promptId: 'p1' } })
    await rules.add('ann', once)
    await rules.add('ann', rule('session', { createdAt: 2, endsWith: { sessionId: 's' } }))
    await rules.add('ann', rule('always', { createdAt: 3 }))
    expect((await rules.list('ann'))[0]).toEqual({ ...once, origin: 'user' })
    expect(await ids()).toEqual(['once', 'session', 'always'])
    await start(null)
    expect(await ids()).toEqual(['session', 'always'])
    // It is deleted, or its id would be in use.
    await rules.add('ann', once)
    // Begun late, as by a call that outlived its prompt.
    await rules.add('ann', rule('late', { createdAt: 4, endsWith: { sessionId: 's', promptId: 'p1' } }))
    expect(await ids()).toEqual(['session', 'always'])
    await start('p2')
    expect(await ids()).toEqual(['session', 'always'])
    await store().sessions.remove('s')
    expect(await ids()).toEqual(['always'])
  })
}
