/** Groups that a provider does not send, and flows that end elsewhere than they began. */
import type { Account } from '@sandlot/shared/account/api'
import { describe, expect, test } from 'vitest'
import { ANN, type Browser, setUp } from '../support/harness.ts'
import { Wanderer, startProvider } from '../support/provider.ts'
import {
  ADA,
  asConfigured,
  harness,
  isSignedIn,
  problemOf,
  provider,
  signIn,
  start,
  url,
  useProvider,
} from '../support/provider-sign-in.ts'

const RULES = { groupsClaim: 'groups', roles: { admins: 'admin' }, teams: { devs: 'Devs' } } as const
const OVERAGE = {
  _claim_names: { groups: 'src1' },
  _claim_sources: { src1: { endpoint: 'https://graph.example.org/v1.0/users/x/getMemberObjects' } },
}

useProvider()

async function begin(who: Wanderer, path: string, body: unknown = {}): Promise<string> {
  const begun = await who.post(`${url}/api/sign-in/providers/${path}`, body)
  return ((await begun.json()) as { url: string }).url
}

/** The address at which the provider sends the browser back. */
async function callbackOf(who: Wanderer, begun: string): Promise<string> {
  let at = begun
  while (!at.startsWith(`${url}/api/sign-in/callback/`)) {
    const response = await who.send(at)
    at = new URL(response.headers.get('location') ?? '', at).href
  }
  return at
}

describe('groups that were not told', () => {
  let ann: Browser
  const ada = async (): Promise<Pick<Account, 'role' | 'teams'> | undefined> => {
    const { users } = (await (await ann.get('/api/users')).json()) as { users: Account[] }
    return users.find(({ email }) => email === ADA['email'])
  }
  /** Ada, an administrator and in Devs by her groups. */
  const withGroups = async (changes: Parameters<typeof start>[0] = RULES): Promise<Wanderer> => {
    await start(changes)
    ann = await setUp(harness)
    provider.person = { ...ADA, groups: ['admins', 'devs'] }
    return (await signIn()).who
  }
  const answerUserInfo = (status: number, type: string, body: string): void => {
    provider.instead = (request, response) => {
      if (request.url !== '/me') return false
      response.writeHead(status, { 'content-type': type }).end(body)
      return true
    }
  }

  test.each<[string, () => void, string]>([
    ['overage', () => (provider.lie = (claims) => ({ ...claims, ...OVERAGE })), 'too many groups'],
    ['hasgroups', () => (provider.lie = (claims) => ({ ...claims, hasgroups: true })), 'too many groups'],
    ['null', () => (provider.lie = (claims) => ({ ...claims, groups: null })), 'is null, not a list'],
    ['absence', () => undefined, 'the claim groups is absent'],
    [
      'failed user info',
      () => answerUserInfo(503, 'text/plain', 'later'),
      'user info answers with status 503',
    ],
    [
      'a signed user info',
      () => answerUserInfo(200, 'application/jwt', 'e30.e30.x'),
      'user info is not JSON',
    ],
  ])('keep role and teams: %s', async (_what, spoil, words) => {
    await withGroups()
    const before = await ada()
    expect(before).toMatchObject({ role: 'admin', teams: [expect.any(String)] })
    provider.person = ADA
    spoil()
    expect(await isSignedIn((await signIn()).who)).toBe(true)
    expect(await ada()).toEqual(before)
    const log = harness.logLines.join('')
    expect(log).toContain(words)
    expect(log).toContain('role and teams stay as they were')
    provider.lie = (claims) => ({ ...claims, groups: [] })
    provider.instead = undefined
    await signIn()
    expect(await ada()).toMatchObject({ role: 'member', teams: [] })
  })

  test('refuse where a group is required, with the reason, and end nothing', async () => {
    const before = await withGroups({ ...RULES, requiredGroup: 'devs' })
    provider.person = ADA
    provider.lie = (claims) => ({ ...claims, ...OVERAGE })
    const { who, at } = await signIn()
    expect(await problemOf(at)).toMatch(/only people of the group “devs”.*named no groups.*too many groups/)
    expect([await isSignedIn(who), await isSignedIn(before)]).toEqual([false, true])
    expect(await ada()).toMatchObject({ role: 'admin' })
    provider.lie = (claims) => ({ ...claims, groups: ['lunch'] })
    await signIn()
    expect(await isSignedIn(before)).toBe(false)
    expect(await ada()).toMatchObject({ role: 'member' })
  })
})

describe('a flow', () => {
  test('ends only at the provider that it was begun with', async () => {
    const other = await startProvider([`${url}/api/sign-in/callback/other`], [])
    const second = asConfigured({ id: 'other', name: 'Other', issuer: other.issuer })
    await start({}, { providers: [asConfigured(), second] })
    provider.person = ADA
    const tokens: string[] = []
    other.instead = (request) => (tokens.push(request.url ?? ''), false)
    const who = new Wanderer()
    const back = new URL(await callbackOf(who, await begin(who, 'work')))
    back.pathname = '/api/sign-in/callback/other'
    // Not every provider says which it is.
    back.searchParams.delete('iss')
    const elsewhere = await who.wander(back.href, url)
    expect(await problemOf(elsewhere)).toContain('was not begun here')
    expect(await isSignedIn(who)).toBe(false)
    // The code was not sent there.
    expect(tokens).not.toContain('/token')
    await other.close()
  })

  test('that links an account ends only in the sign-in that began it', async () => {
    await start()
    await setUp(harness)
    const signedIn = async (): Promise<Wanderer> => {
      const who = new Wanderer()
      await who.post(`${url}/api/sign-in`, { email: ANN.email, password: ANN.password })
      return who
    }
    provider.person = { ...ADA, email: 'other@example.org' }
    const password = ANN.password
    const linked = async (who: Wanderer): Promise<unknown[]> =>
      ((await (await who.send(`${url}/api/account/ways`)).json()) as { providers: unknown[] }).providers

    const left = await signedIn()
    const back = await callbackOf(left, await begin(left, 'work/link', { password, returnTo: '/settings' }))
    await left.post(`${url}/api/sign-out`, {})
    const out = await left.wander(back, url)
    expect(out.pathname).toBe('/settings')
    expect(await problemOf(out)).toContain('has ended meanwhile')

    const again = await signedIn()
    const later = await callbackOf(again, await begin(again, 'work/link', { password }))
    // Another sign-in in the same browser, while the one that began it stays.
    await again.post(`${url}/api/sign-in`, { email: ANN.email, password: ANN.password })
    expect(await problemOf(await again.wander(later, url))).toContain('has ended meanwhile')
    expect(await linked(again)).toEqual([])
    await again.wander(await begin(again, 'work/link', { password }), url)
    expect(await linked(again)).toHaveLength(1)
  })

  test('makes an account with the name and address that a person could give themselves', async () => {
    await start()
    provider.person = { ...ADA, name: ` Ada\u202E\u200B \n Love\u0000lace${'!'.repeat(200)} ` }
    const { who } = await signIn()
    const { name } = (await (await who.send(`${url}/api/me`)).json()) as { name: string }
    expect(name).toBe(`Ada Lovelace${'!'.repeat(88)}`)
    provider.person = { ...ADA, sub: 'two', email: 'eve@example.org,ada@example.org' }
    expect(await problemOf((await signIn()).at)).toContain('sent no e-mail address')
  })
})
