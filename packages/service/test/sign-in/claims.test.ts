/** Claims in the shapes in which providers send them: groups, addresses, names. */
import { expect, test } from 'vitest'
import { readClaims } from '../../src/sign-in/claims.ts'

const ADA = { sub: 'ada-1', name: 'Ada', email: 'ada@example.org', email_verified: true }
const RULES = { groupsClaim: 'groups', roles: { admins: 'admin' }, teams: { devs: 'Devs' } } as const
const rules = { ...RULES, name: 'Work', domains: undefined, trusted: false, requiredGroup: undefined }
const read = (groups: unknown, more: object = {}) => readClaims({ ...ADA, groups }, { ...rules, ...more })

test.each<[unknown, 'admin' | null | undefined, string[] | undefined]>([
  ['devs,admins', 'admin', ['Devs']],
  [' devs , admins ,', 'admin', ['Devs']],
  [['devs,admins'], null, []],
  ['devs', null, ['Devs']],
  ['', null, []],
  [[], null, []],
  [null, undefined, undefined],
  [7, undefined, undefined],
  [[{ id: 1 }], undefined, undefined],
  [undefined, undefined, undefined],
])('groups %j', (groups, role, teams) => {
  const { identity } = read(groups)
  expect([identity.role, identity.teams]).toEqual([role, teams])
})

test('one text with commas is said in the log and the refusal, unless a group is called so', () => {
  const { identity, notes } = read('devs,lunch', { requiredGroup: 'sandlot' })
  expect(notes).toEqual(['the claim groups is one text with commas, read as 2 groups'])
  expect(identity.refused).toContain('one text with commas')
  expect(identity.unproven).toBeUndefined()
  const called = read('devs,admins', { teams: { 'devs,admins': 'Both', devs: 'Devs' } })
  expect([called.identity.role, called.identity.teams, called.notes]).toEqual([null, ['Both'], []])
})

test.each([
  ['a@x.org, b@x.org'],
  ['a@x.org\nb@x.org'],
  ['Ada <a@x.org>'],
  [`${'a'.repeat(250)}@x.org`],
  ['a\u200Bb@x.org'],
])('%j is no address', (email) => {
  const { identity, notes } = readClaims({ ...ADA, email }, rules)
  expect([identity.email, identity.emailVerified]).toEqual([undefined, false])
  expect(notes).toContain('email is not one address')
})

test.each([
  [{ name: '\u200B\u2060' }, 'ada'],
  [{ name: '', preferred_username: ' ada.l ' }, 'ada.l'],
  [{ name: ['Ada'], email: 'none' }, 'ada-1'],
  [{ name: 'علی\u200Cرضا' }, 'علی\u200Cرضا'],
  [{ name: `${'a'.repeat(99)}\u{1f600}` }, 'a'.repeat(99)],
])('%j is called %s', (claims, name) => {
  expect(readClaims({ ...ADA, ...claims }, rules).identity.name).toBe(name)
})
