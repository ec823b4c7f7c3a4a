import type { Account } from '@sandlot/shared/account/api'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { openAccounts } from '../../src/accounts/accounts.ts'
import type { AccountsStore } from '../../src/accounts/store.ts'
import { onBoth } from '../support/databases.ts'

const OPTIONS = { secret: 'x'.repeat(40), publicUrl: 'http://127.0.0.1:8002' }

onBoth(({ fresh }) => {
  let accounts: AccountsStore
  let ann: Account

  beforeEach(async () => {
    accounts = await openAccounts(await fresh(), OPTIONS)
    ann = await accounts.users.create({
      name: 'Ann',
      email: 'ann@example.org',
      password: 'correct horse',
      role: 'admin',
    })
  })

  afterEach(() => accounts.close())

  test('an invitation for any address gives nobody what waits for another', async () => {
    await accounts.teams.adopt([{ id: 't_data', name: 'Data', members: ['bob@example.org'] }])
    const invite = { role: 'member' as const, teams: [], createdBy: 'Ann', expiresAt: Date.now() + 60_000 }
    const open = await accounts.invitations.create({ ...invite, email: null })
    const bob = { name: 'Bob', email: 'Bob@example.org', password: 'battery staple' }
    await expect(accounts.invitations.accept(open.token, bob)).rejects.toMatchObject({ code: 'forbidden' })
    const his = await accounts.invitations.create({ ...invite, email: 'bob@example.org' })
    await accounts.invitations.accept(his.token, bob)
    expect(await accounts.users.list()).toMatchObject([{ name: 'Ann' }, { name: 'Bob', teams: ['t_data'] }])
  })

  describe('teams', () => {
    test('are listed by name with their members, and an account names its teams', async () => {
      const { teams } = accounts
      const ops = await teams.create('ops')
      const data = await teams.create('Data')
      await teams.setMember(data.id, ann.id, true)
      expect(await teams.setMember(data.id, ann.id, true)).toEqual({
        ...data,
        members: [{ userId: ann.id, source: 'admin' }],
      })
      expect((await teams.list()).map(({ name }) => name)).toEqual(['Data', 'ops'])
      expect(await accounts.users.list()).toMatchObject([{ teams: [data.id] }])
      await teams.remove(data.id)
      expect(await teams.list()).toEqual([ops])
      expect(await accounts.users.list()).toMatchObject([{ teams: [] }])
    })

    test('have names that differ by more than case', async () => {
      const { teams } = accounts
      const both = await Promise.allSettled([teams.create('Data'), teams.create('DATA')])
      expect(both.map(({ status }) => status).toSorted()).toEqual(['fulfilled', 'rejected'])
      const [data] = await teams.list()
      const ops = await teams.create('ops')
      await expect(teams.rename(ops.id, 'dATa')).rejects.toMatchObject({ code: 'conflict' })
      await expect(teams.rename(data?.id ?? '', 'data')).resolves.toMatchObject({ name: 'data' })
    })

    test('of two who rename one, the second reads the name of the first', async () => {
      const { teams } = accounts
      const { id } = await teams.create('data')
      await teams.rename(id, 'numbers', 'data')
      await expect(teams.rename(id, 'figures', 'data')).rejects.toThrow('renamed this team to numbers')
      expect((await teams.list())[0]?.name).toBe('numbers')
    })

    test('that there are not, and persons that there are not, are refused', async () => {
      const { teams } = accounts
      const { id } = await teams.create('data')
      for (const tried of [
        () => teams.rename('t_x', 'y'),
        () => teams.remove('t_x'),
        () => teams.setMember('t_x', ann.id, true),
        () => teams.setMember(id, 'nobody', true),
      ])
        await expect(tried()).rejects.toMatchObject({ code: 'not_found' })
    })

    test('the groups of a sign-in replace what groups said before, and nothing else', async () => {
      const { teams } = accounts
      const [data, ops, web] = [
        await teams.create('data'),
        await teams.create('ops'),
        await teams.create('web'),
      ]
      await teams.setMember(data.id, ann.id, true)
      expect(await teams.setFromGroups(ann.id, [data.id, ops.id, 't_gone'])).toBe(true)
      expect(await teams.setFromGroups(ann.id, [ops.id, ops.id, data.id])).toBe(false)
      expect(await accounts.users.list()).toMatchObject([{ teams: [data.id, ops.id].toSorted() }])
      await expect(teams.setMember(ops.id, ann.id, false)).rejects.toMatchObject({ code: 'conflict' })
      expect(await teams.setFromGroups(ann.id, [web.id])).toBe(true)
      expect(await accounts.users.list()).toMatchObject([{ teams: [data.id, web.id].toSorted() }])
    })

    test('lose a member whose account ends', async () => {
      const { id } = await accounts.teams.create('data')
      const bob = await accounts.users.create({
        name: 'Bob',
        email: 'bob@example.org',
        password: 'correct horse',
        role: 'member',
      })
      await accounts.teams.setMember(id, bob.id, true)
      await accounts.users.remove(bob.id, 'keep')
      expect((await accounts.teams.list())[0]?.members).toEqual([])
    })
  })

  describe('changing a person', () => {
    test('the last administrator stays one', async () => {
      await expect(accounts.users.change(ann.id, { role: 'member' })).rejects.toThrow('last administrator')
      const bob = await accounts.users.create({
        name: 'Bob',
        email: 'bob@example.org',
        password: 'correct horse',
        role: 'member',
      })
      await accounts.users.change(bob.id, { role: 'admin' })
      const both = await Promise.allSettled([
        accounts.users.change(ann.id, { role: 'member' }),
        accounts.users.change(bob.id, { role: 'guest' }),
      ])
      expect(both.map(({ status }) => status).toSorted()).toEqual(['fulfilled', 'rejected'])
    })

    test('the second of two administrators who saw the same is refused', async () => {
      const bob = await accounts.users.create({
        name: 'Bob',
        email: 'bob@example.org',
        password: 'correct horse',
        role: 'member',
      })
      const was = { role: bob.role, name: bob.name }
      await accounts.users.change(bob.id, { role: 'guest', was })
      await expect(accounts.users.change(bob.id, { name: 'Robert', was })).rejects.toMatchObject({
        code: 'conflict',
        message: expect.stringContaining('guest') as string,
      })
      await expect(accounts.users.change('nobody', { role: 'admin' })).rejects.toMatchObject({
        code: 'not_found',
      })
    })
  })
})
