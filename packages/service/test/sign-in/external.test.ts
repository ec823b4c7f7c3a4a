import type { ServerResponse } from 'node:http'
import type { Account } from '@sandlot/shared/account/api'
import { describe, expect, test } from 'vitest'
import { ANN, type Browser, setUp, waitFor } from '../support/harness.ts'
import { Wanderer } from '../support/provider.ts'
import {
  ADA,
  harness,
  isSignedIn,
  me,
  problemOf,
  provider,
  signIn,
  start,
  url,
  useProvider,
} from '../support/provider-sign-in.ts'

useProvider()

describe('an invitation', () => {
  let ann: Browser
  const invite = async (more: object = {}): Promise<string> => {
    ann = await setUp(harness)
    const { id } = (await (await ann.post('/api/teams', { name: 'Data' })).json()) as { id: string }
    const made = await ann.post('/api/invitations', { role: 'guest', teams: [id], ...more })
    return new URL(((await made.json()) as { url: string }).url).searchParams.get('token') ?? ''
  }

  test('is accepted by a provider that makes no accounts by itself, once', async () => {
    await start({ signUp: false }, {}, true)
    const invitation = await invite()
    provider.person = ADA
    const { who } = await signIn(undefined, { invitation })
    expect(await me(who)).toMatchObject({ name: 'Ada', role: 'guest' })
    const { users } = (await (await ann.get('/api/users')).json()) as { users: Account[] }
    expect(users.find(({ name }) => name === 'Ada')?.teams).toHaveLength(1)
    const again = await new Wanderer().post(`${url}/api/sign-in/providers/work`, { invitation })
    expect([again.status, await again.json()]).toMatchObject([403, { message: /used already/ }])
  })

  test('for another address makes nothing, and can still be used', async () => {
    await start({ signUp: false }, {}, true)
    const invitation = await invite({ email: 'bob@example.org' })
    provider.person = ADA
    expect(await problemOf((await signIn(undefined, { invitation })).at)).toContain('another e-mail address')
    provider.person = { ...ADA, sub: 'bob-1', name: 'Bob', email: 'bob@example.org' }
    expect(await me((await signIn(undefined, { invitation })).who)).toMatchObject({
      name: 'Bob',
      role: 'guest',
    })
  })

  test('that is none is cleared in the browser, and the next sign-in works', async () => {
    await start({}, {}, true)
    await invite()
    provider.person = ADA
    for (const bad of ['x'.repeat(32), '', '%00', '%E0%A4%A']) {
      const who = new Wanderer()
      await who.post(`${url}/api/sign-in/providers/work`, {})
      const cookie = `${who.cookie(url)}; sandlot_invitation=${bad}`
      const back = await fetch(`${url}/api/sign-in/callback/work?state=none&code=x`, {
        headers: { cookie },
        redirect: 'manual',
      })
      expect(back.status, bad).toBe(302)
      expect(back.headers.getSetCookie().join(), bad).toMatch(/sandlot_invitation=; Max-Age=0/)
    }
    const begun = await new Wanderer().post(`${url}/api/sign-in/providers/work`, {
      invitation: 'x'.repeat(32),
    })
    expect(begun.ok).toBe(false)
    expect(begun.headers.getSetCookie().join()).toMatch(/sandlot_invitation=; Max-Age=0/)
    expect(await me((await signIn()).who)).toMatchObject({ name: 'Ada' })
  })

  test('for any address gives nobody the sign-in of the person who has that address', async () => {
    await start({}, {}, true)
    const token = await invite()
    const thief = { token, name: 'Eve', email: ADA.email, password: 'battery staple' }
    expect((await new Wanderer().post(`${url}/api/invitations/accept`, thief)).status).toBe(200)
    provider.person = ADA
    expect(await problemOf((await signIn()).at)).toContain('by an invitation for any address')
  })

  test('of a person who has an account changes nothing and stays', async () => {
    await start({}, {}, true)
    const invitation = await invite()
    provider.person = ADA
    await signIn()
    expect(await me((await signIn(undefined, { invitation })).who)).toMatchObject({ role: 'member' })
    provider.person = { ...ADA, sub: 'bob-1', name: 'Bob', email: 'bob@example.org' }
    expect(await me((await signIn(undefined, { invitation })).who)).toMatchObject({
      name: 'Bob',
      role: 'guest',
    })
  })
})

describe('a sign-in by a provider', () => {
  test('makes an account, comes back to the page, and is the same account the next time', async () => {
    await start()
    provider.person = ADA
    const { who, at } = await signIn(undefined, { returnTo: '/s/abc?x=1' })
    expect(at.href).toBe(`${url}/s/abc?x=1`)
    const first = await me(who)
    expect(first).toMatchObject({ name: 'Ada', email: 'ada@example.org', role: 'member' })
    // Another address there, and a name that somebody else could have: the subject decides.
    provider.person = { ...ADA, email: 'ada.l@example.org', email_verified: false }
    const again = await signIn()
    expect(await me(again.who)).toEqual(first)
  })

  test('goes on to pages of ours only', async () => {
    await start()
    for (const returnTo of [
      'https://evil.example',
      '//evil.example',
      '/\\evil.example',
      '/.//evil.example',
      '/\t/evil.example',
      '/api/me',
      'javascript:alert(1)',
    ]) {
      const answer = await new Wanderer().post(`${url}/api/sign-in/providers/work`, { returnTo })
      expect([returnTo, answer.status]).toEqual([returnTo, 400])
    }
    const unknown = await new Wanderer().post(`${url}/api/sign-in/providers/other`, {})
    expect(unknown.status).toBe(404)
  })

  test('is not finished by another browser, twice, or without a state', async () => {
    await start()
    provider.person = ADA
    const victim = new Wanderer()
    const thief = new Wanderer()
    const begun = await thief.post(`${url}/api/sign-in/providers/work`, {})
    const { url: there } = (await begun.json()) as { url: string }
    // The thief stops at the callback, and has the victim open it.
    let at = there
    while (!at.startsWith(`${url}/api/sign-in/callback/`)) {
      const response = await thief.send(at)
      at = new URL(response.headers.get('location') ?? '', at).href
    }
    expect(await problemOf(await victim.wander(at, url))).toContain('was not begun here')
    expect(await isSignedIn(victim)).toBe(false)
    expect((await thief.wander(at, url)).pathname).toBe('/')
    expect(await problemOf(await thief.wander(at, url))).toContain('was not begun here')
    const bare = await new Wanderer().wander(`${url}/api/sign-in/callback/work?code=x`, url)
    expect(await problemOf(bare)).toContain('was not begun here')
  })

  test('ends at the provider too', async () => {
    await start()
    provider.person = ADA
    const { who } = await signIn()
    const out = await who.post(`${url}/api/sign-out`, {})
    const { url: there } = (await out.json()) as { url: string }
    const asked = new URL(there)
    expect(asked.origin).toBe(provider.issuer)
    expect(asked.searchParams.get('post_logout_redirect_uri')).toBe(`${url}/sign-in`)
    expect(asked.searchParams.get('id_token_hint')).toMatch(/^ey/)
    expect(await isSignedIn(who)).toBe(false)
    expect((await who.send(there)).status).toBe(200)
  })

  test('survives new keys of the provider', async () => {
    await start()
    provider.person = ADA
    await signIn()
    await provider.rotate()
    // Keys are asked for at most once a second.
    await new Promise((resolve) => setTimeout(resolve, 1_100))
    const { who } = await signIn()
    expect(await isSignedIn(who)).toBe(true)
  })
})

describe('a provider that lies', () => {
  const now = (): number => Math.floor(Date.now() / 1000)
  test.each<[string, (claims: Record<string, unknown>) => Record<string, unknown>, string]>([
    ['nonce', (claims) => ({ ...claims, nonce: 'another' }), 'nonce'],
    ['no nonce', ({ nonce: _gone, ...claims }) => claims, 'nonce'],
    [
      'audience',
      (claims) => ({ ...claims, aud: 'other-app' }),
      'it is for "other-app", not for the client sandlot',
    ],
    [
      'audiences',
      (claims) => ({ ...claims, aud: ['sandlot', 'other-app'], azp: 'other-app' }),
      'another program',
    ],
    [
      'issuer',
      (claims) => ({ ...claims, iss: 'https://evil.example' }),
      'it is of the issuer "https://evil.example"',
    ],
    ['expired', (claims) => ({ ...claims, exp: now() - 120, iat: now() - 500 }), 'The clock of'],
    ['future', (claims) => ({ ...claims, iat: now() + 600, exp: now() + 1_200 }), 'The clock of'],
    ['no subject', ({ sub: _gone, ...claims }) => claims, 'sub'],
    ['subject', (claims) => ({ ...claims, sub: `ada-1\0` }), 'cannot be used'],
    ['subject’s type', (claims) => ({ ...claims, sub: 7 }), 'cannot be used'],
    ['subject’s length', (claims) => ({ ...claims, sub: 'a'.repeat(256) }), 'cannot be used'],
    ['person', (claims) => ({ ...claims, sub: 'somebody-else' }), 'another person'],
  ])('about the %s is refused, in words', async (_what, lie, words) => {
    await start()
    provider.person = ADA
    provider.lie = lie
    const { who, at } = await signIn()
    expect(await problemOf(at)).toContain(words)
    expect(await isSignedIn(who)).toBe(false)
    expect(harness.logLines.join('')).toContain('a sign-in was refused')
  })

  test('a clock that is a little off is accepted', async () => {
    await start()
    provider.person = ADA
    provider.lie = (claims) => ({ ...claims, iat: now() + 30, exp: now() - 30 })
    expect(await isSignedIn((await signIn()).who)).toBe(true)
  })

  test('a signature by a key that it does not publish is refused', async () => {
    await start()
    provider.person = ADA
    provider.instead = (request, response) => {
      if (request.url !== '/jwks') return false
      response.setHeader('content-type', 'application/json').end('{"keys":[]}')
      return true
    }
    const { at } = await signIn()
    expect(await problemOf(at)).toContain('ID token that cannot be accepted')
  })

  test('an answer of 3 MB, a redirect and a hole are cut off', async () => {
    await start()
    provider.person = ADA
    const answers: ((response: ServerResponse) => void)[] = [
      (response) => response.end('x'.repeat(3_000_000)),
      (response) => response.writeHead(302, { location: 'http://169.254.169.254/' }).end(),
      (response) => response.writeHead(500).end('{'),
    ]
    for (const answer of answers) {
      provider.instead = (request, response) => {
        if (request.url !== '/token') return false
        answer(response)
        return true
      }
      const { who, at } = await signIn()
      expect(await problemOf(at)).toMatch(/does not answer|did not exchange the code/)
      expect(await isSignedIn(who)).toBe(false)
    }
  })

  test('says itself why it refuses', async () => {
    await start()
    provider.person = ADA
    provider.instead = (request, response) => {
      if (request.url?.startsWith('/auth?') !== true) return false
      const asked = new URL(request.url, provider.issuer).searchParams
      const back = new URL(asked.get('redirect_uri') ?? '')
      back.searchParams.set('error', 'access_denied')
      back.searchParams.set('error_description', 'You are not assigned')
      back.searchParams.set('state', asked.get('state') ?? '')
      response.writeHead(302, { location: back.href }).end()
      return true
    }
    expect(await problemOf((await signIn()).at)).toBe('Work refused: You are not assigned')
  })
})

describe('an account of the address', () => {
  const makeBob = async (): Promise<void> => {
    const ann = await setUp(harness)
    const made = await ann.post('/api/users', {
      name: 'Bob',
      email: 'bob@example.org',
      password: 'battery staple',
    })
    expect(made.status).toBe(201)
  }

  test('is linked once, where the provider verified the address', async () => {
    await start()
    await makeBob()
    provider.person = { sub: 'bob-1', name: 'Robert', email: 'BOB@example.org', email_verified: true }
    const { who } = await signIn()
    expect(await me(who)).toMatchObject({ name: 'Bob', email: 'bob@example.org' })
    expect(await (await who.send(`${url}/api/account/ways`)).json()).toMatchObject({
      password: true,
      providers: [{ id: 'work', name: 'Work' }],
    })
    // The address belongs to another person there now.
    provider.person = { sub: 'bob-2', name: 'Bobby', email: 'bob@example.org', email_verified: true }
    const other = await signIn()
    expect(await problemOf(other.at)).toContain('belongs to another person of Work')
  })

  test.each([undefined, false, 'yes', 1])('is not where email_verified is %j', async (verified) => {
    await start()
    await makeBob()
    provider.person = {
      sub: 'bob-1',
      name: 'Bob',
      email: 'bob@example.org',
      ...(verified === undefined ? {} : { email_verified: verified }),
    }
    const { who, at } = await signIn()
    expect(await problemOf(at)).toContain('does not say that the address bob@example.org is verified')
    expect(await isSignedIn(who)).toBe(false)
  })

  test('is linked without that where the operator trusts the provider', async () => {
    await start({ trusted: true })
    await makeBob()
    provider.person = { sub: 'bob-1', name: 'Bob', email: 'bob@example.org' }
    expect(await me((await signIn()).who)).toMatchObject({ email: 'bob@example.org' })
  })

  test('of an administrator is linked only by themselves', async () => {
    await start({ trusted: true })
    await setUp(harness)
    provider.person = { sub: 'ann-1', name: 'Ann', email: ANN.email, email_verified: true }
    const { who, at } = await signIn()
    expect(await problemOf(at)).toContain('link Work under Settings')
    expect(await isSignedIn(who)).toBe(false)

    const ann = new Wanderer()
    await ann.post(`${url}/api/sign-in`, { email: ANN.email, password: ANN.password })
    const link = `${url}/api/sign-in/providers/work/link`
    expect((await ann.post(link, {})).status).toBe(403)
    expect((await ann.post(link, { password: 'wrong horse' })).status).toBe(403)
    provider.person = { sub: 'ann-1', name: 'Ann', email: 'other@example.org' }
    const begun = await ann.post(link, { password: ANN.password, returnTo: '/settings' })
    const { url: there } = (await begun.json()) as { url: string }
    expect((await ann.wander(there, url)).href).toBe(`${url}/settings`)
    expect(await me((await signIn()).who)).toMatchObject({ email: ANN.email, role: 'admin' })

    const gone = await ann.send(`${url}/api/account/providers/work`, { method: 'DELETE' })
    expect(gone.status).toBe(204)
    provider.person = { ...provider.person, email: ANN.email }
    expect(await problemOf((await signIn()).at)).toContain('link Work under Settings')
  })

  test('cannot take what is linked to another one, and keeps its only way in', async () => {
    await start()
    await makeBob()
    provider.person = ADA
    const { who: ada } = await signIn()
    expect((await ada.send(`${url}/api/account/providers/work`, { method: 'DELETE' })).status).toBe(409)
    const bob = new Wanderer()
    await bob.post(`${url}/api/sign-in`, { email: 'bob@example.org', password: 'battery staple' })
    const begun = await bob.post(`${url}/api/sign-in/providers/work/link`, { password: 'battery staple' })
    const { url: there } = (await begun.json()) as { url: string }
    const at = await bob.wander(there, url)
    expect(at.pathname).toBe('/')
    expect(await problemOf(at)).toContain('belongs to another account here')
  })
})

describe('who comes in', () => {
  test('nobody new where sign-up is off', async () => {
    await start({ signUp: false })
    provider.person = ADA
    expect(await problemOf((await signIn()).at)).toContain(
      'There is no account with the address ada@example.org',
    )
  })

  test('only addresses of the listed domains', async () => {
    await start({ domains: ['example.org'] })
    provider.person = { ...ADA, email: 'ada@evil-example.org' }
    expect(await problemOf((await signIn()).at)).toContain('lets in only addresses of example.org')
    provider.person = { ...ADA, email_verified: false }
    expect(await problemOf((await signIn()).at)).toContain('is verified')
    provider.person = ADA
    expect(await isSignedIn((await signIn()).who)).toBe(true)
  })

  test('only people of the required group; who leaves it is out everywhere', async () => {
    await start({ groupsClaim: 'groups', requiredGroup: 'sandlot' })
    provider.person = { ...ADA, groups: ['sales', 'lunch'] }
    expect(await problemOf((await signIn()).at)).toBe(
      'Work lets in only people of the group “sandlot”. It says that you are in sales, lunch.',
    )
    provider.person = { ...ADA, groups: { sandlot: true } }
    expect(await problemOf((await signIn()).at)).toContain('the claim groups is an object, not a list')
    provider.person = ADA
    expect(await problemOf((await signIn()).at)).toContain('the claim groups is absent')
    provider.person = { ...ADA, groups: ['sandlot'] }
    const { who } = await signIn()
    expect(await isSignedIn(who)).toBe(true)
    provider.person = { ...ADA, groups: ['sales'] }
    await signIn()
    expect(await isSignedIn(who)).toBe(false)
    expect(harness.logLines.join('')).toContain('exclude a user')
  })

  test('with a password only administrators, where it is set so', async () => {
    await start({}, { localSignIn: 'admins' })
    const ann = await setUp(harness)
    await ann.post('/api/users', { name: 'Bob', email: 'bob@example.org', password: 'battery staple' })
    const bob = new Wanderer()
    const refused = await bob.post(`${url}/api/sign-in`, {
      email: 'bob@example.org',
      password: 'battery staple',
    })
    expect(refused.status).toBe(403)
    expect(await refused.json()).toMatchObject({
      message: expect.stringContaining('Sign in by Work') as string,
    })
    expect(await isSignedIn(bob)).toBe(false)
    const back = await new Wanderer().post(`${url}/api/sign-in`, { email: ANN.email, password: ANN.password })
    expect(back.status).toBe(200)
  })
})

describe('groups', () => {
  const ROLES = {
    groupsClaim: 'realm_access.roles',
    roles: { staff: 'member', boss: 'admin', extern: 'guest' },
  } as const
  const roleOf = async (roles: unknown): Promise<unknown> => {
    provider.person = { ...ADA, realm_access: { roles } }
    return ((await me((await signIn()).who)) as { role: string }).role
  }

  test('give roles at every sign-in, and take them', async () => {
    await start(ROLES, {}, true)
    await setUp(harness)
    expect(await roleOf(['extern'])).toBe('guest')
    expect(await roleOf(['extern', 'boss'])).toBe('admin')
    expect(await roleOf(['lunch'])).toBe('member')
    expect(await roleOf(['extern'])).toBe('guest')
    expect(await roleOf([])).toBe('member')
    // The agent knows of each before her next request.
    const told = harness.agent.received.filter((line) => line.startsWith('person '))
    expect(told.map((line) => line.split(' ')[2])).toEqual(['guest', 'admin', 'member', 'guest', 'member'])
  })

  test('put people into teams, and take them out of those alone', async () => {
    await start({ groupsClaim: 'groups', teams: { 'data-team': 'Data', ops: 'Operations' } })
    const ann = await setUp(harness)
    const teamsOf = async (groups: unknown): Promise<string[]> => {
      provider.person = { ...ADA, groups }
      await signIn()
      const { users } = (await (await ann.get('/api/users')).json()) as { users: Account[] }
      return users.find(({ email }) => email === ADA['email'])?.teams ?? []
    }
    const [data, operations] = await teamsOf(['data-team', 'ops', 'lunch'])
    expect(await teamsOf(['ops'])).toHaveLength(1)
    const [left] = await teamsOf('ops')
    expect([data, operations]).toContain(left)
    expect(await teamsOf(undefined)).toEqual([left])
    expect(await teamsOf('')).toEqual([])
    const made = harness.logLines.filter((line) => line.includes('created a team named by groups'))
    expect(made.map((line) => (JSON.parse(line) as { name: string }).name)).toEqual(['Data', 'Operations'])
  })

  test('of a wrong type, or 5,000 of them, give what is certain', async () => {
    await start(ROLES)
    await setUp(harness)
    expect(await roleOf(['boss'])).toBe('admin')
    expect(await roleOf({ boss: true })).toBe('admin')
    expect(await roleOf([1, null])).toBe('admin')
    expect(await roleOf([1, null, ['boss'], 'extern'])).toBe('guest')
    const many = Array.from({ length: 5_000 }, (_, n) => `group-${n}`)
    expect(await roleOf(['boss', ...many])).toBe('admin')
    expect(await roleOf([...many, 'boss'])).toBe('member')
    const log = harness.logLines.join('')
    expect(log).toContain('the claim realm_access.roles is an object, not a list')
    expect(log).toContain('3 of 4 entries of realm_access.roles are no names of groups')
    expect(log).toContain('realm_access.roles has 5001 groups; only the first 1000 count')
  })

  test('do not take the role of the last administrator', async () => {
    await start(ROLES)
    expect(await roleOf(['boss'])).toBe('admin')
    expect(await roleOf([])).toBe('admin')
    expect(harness.logLines.join('')).toContain('the last administrator')
  })
})

describe('a provider that is down', () => {
  test('at the start keeps its button, says why, and works once it is there', async () => {
    await provider.pause()
    await start()
    await waitFor(async () => (await ways()).providers[0]?.ready === false)
    const begun = await new Wanderer().post(`${url}/api/sign-in/providers/work`, {})
    expect(begun.status).toBe(503)
    const reasons = (await (await fetch(`${url}/readyz`)).json()) as {
      reasons: { part: string; ok: boolean; message: string }[]
    }
    expect(reasons.reasons.find(({ part }) => part === 'sign-in')).toMatchObject({
      ok: false,
      message: expect.stringContaining('Work: ') as string,
    })
    await provider.resume()
    await waitFor(async () => (await ways()).providers[0]?.ready === true)
    provider.person = ADA
    expect(await isSignedIn((await signIn()).who)).toBe(true)
  })

  test('between the two steps of a sign-in is said', async () => {
    await start()
    provider.person = ADA
    await signIn()
    provider.instead = (request) => {
      if (request.url !== '/token') return false
      request.socket.destroy()
      return true
    }
    expect(await problemOf((await signIn()).at)).toContain('Work does not answer')
  })

  test('another issuer than the configured one is not used', async () => {
    await start({ issuer: `${provider.issuer}/` })
    await waitFor(async () =>
      harness.logLines.some((line) => line.includes('Set \\"issuer\\" to exactly that')),
    )
    expect((await ways()).providers).toEqual([{ id: 'work', name: 'Work', ready: false }])
  })

  async function ways(): Promise<{ providers: { id: string; name: string; ready: boolean }[] }> {
    return (await (await fetch(`${url}/api/sign-in/providers`)).json()) as {
      providers: { id: string; name: string; ready: boolean }[]
    }
  }
})
