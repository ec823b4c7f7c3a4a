import { makeSandlotEvent } from '@sandlot/shared/chat/events'
import type { NewNotification } from '@sandlot/storage/tables/records'
import { SMTPServer } from 'smtp-server'
import type { AddressInfo } from 'node:net'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import {
  type Browser,
  type Harness,
  Tab,
  addUser,
  browser,
  cookieOf,
  makeKey,
  setUp,
  startHarness,
  waitFor,
} from '../support/harness.ts'
import { openPush } from '../../src/notifications/push.ts'
import { PushBrowser, PushService } from '../support/push-service.ts'

const TIMES = {
  pollMs: 20,
  mailApprovalMs: 50,
  mailOtherMs: 100,
  mailRetry: { firstMs: 20, longestMs: 40 },
}
const SECRET = 'cat /etc/secret-plan'

let service: PushService
let smtp: SMTPServer
let mails: string[]
let refuseMails: number
let harness: Harness
let ann: Browser
let annId: string

beforeEach(async () => {
  service = await PushService.start()
  mails = []
  refuseMails = 0
  smtp = new SMTPServer({
    authOptional: true,
    disabledCommands: ['STARTTLS'],
    onData(stream, _session, done) {
      let raw = ''
      stream.on('data', (piece: Buffer) => (raw += piece.toString()))
      stream.on('end', () => {
        if (refuseMails-- > 0) return done(new Error('later'))
        mails.push(raw)
        done()
      })
    },
  })
  await new Promise<void>((resolve) => {
    smtp.listen(0, '127.0.0.1', () => resolve())
  })
  const { port } = smtp.server.address() as AddressInfo
  const from = { name: 'Sandlot', address: 'sandlot@example.org' }
  harness = await startHarness(
    { mail: { host: '127.0.0.1', port, secure: false, auth: undefined, from } },
    { notificationTimes: TIMES, push: { loopback: true, timeoutMs: 300 } },
  )
  ann = await setUp(harness)
  annId = ((await (await ann.get('/api/me')).json()) as { id: string }).id
})
afterEach(async () => {
  await harness.close()
  await service.close()
  await new Promise<void>((resolve) => smtp.close(() => resolve()))
})

async function subscribed(user: Browser, path: string): Promise<PushBrowser> {
  const made = new PushBrowser(service, path)
  expect((await user.post('/api/notices/push', made.subscription)).status).toBe(204)
  return made
}

/** Stores an approval of this session, as ai-agent does. */
async function happen(sessionId: string, notices: NewNotification[], at = Date.now()): Promise<void> {
  const { store } = harness.agent
  if ((await store.sessions.get(sessionId)) === undefined)
    await store.sessions.create({ id: sessionId, userId: annId, cwd: '/workspace', mode: 'manual', at })
  const asked = notices.find(({ kind }) => kind === 'approval')
  const event = makeSandlotEvent({ type: 'turn_ended', callIds: [SECRET] }, { promptId: 'p' }, at)
  await store.log.append(sessionId, [event], {
    title: SECRET,
    notifications: notices,
    ...(asked === undefined
      ? {}
      : { approvalAsked: { toolCallId: asked.ref, askedAt: at, expiresAt: at + 60_000 } }),
  })
}

const approval = (ref: string): NewNotification => ({
  userId: annId,
  kind: 'approval',
  ref,
  about: 'run_shell_command',
})

async function metric(channel: string, result: string): Promise<number> {
  const text = await (await fetch(`${harness.service.url}/metrics`)).text()
  const line = new RegExp(`^sandlot_notices_total\\{channel="${channel}",result="${result}"\\} (\\d+)`, 'm')
  return Number(line.exec(text)?.[1] ?? 0)
}

async function settings(more: object): Promise<void> {
  const { choice } = (await (await ann.get('/api/notices/settings')).json()) as { choice: object }
  expect((await ann.put('/api/notices/settings', { ...choice, ...more })).status).toBe(200)
}

describe('a notice', () => {
  test('reaches who is away by push and then by e-mail, and says only the kind and the tool', async () => {
    const pushes = await subscribed(ann, '/one')
    await happen('s_one', [approval('c1')])
    await waitFor(() => service.pushed.length > 0 && mails.length > 0)
    expect(service.to(pushes)).toEqual([
      { title: 'A chat waits for you: run_shell_command', body: '', tag: 's_one', url: '/s/s_one' },
    ])
    const { headers } = service.pushed[0] ?? {}
    expect(headers).toMatchObject({ 'content-encoding': 'aes128gcm', ttl: '3600', urgency: 'high' })
    expect(headers?.authorization).toMatch(/^vapid t=/)
    expect(mails[0]).toMatch(/^Subject: Sandlot: A chat waits for you: run_shell_command\r$/m)
    expect(mails[0]).toMatch(/^To: ann@example\.org\r$/m)
    expect(mails[0]).toContain(`${harness.service.url}/s/s_one`)
    expect(`${mails.join('')}${JSON.stringify(service.to(pushes))}`).not.toContain('secret-plan')
    expect(await metric('push', 'sent')).toBe(1)
    expect(await metric('mail', 'sent')).toBe(1)
  })

  test('is not sent to who sees a page, and a page that is hidden or a program’s socket sees none', async () => {
    const pushes = await subscribed(ann, '/one')
    const tab = await Tab.of(ann, harness.service.url)
    tab.send({ type: 'ai_chat_visible', visible: true })
    await tab.settle()
    await happen('s_one', [approval('c1')])
    // Another person's notice comes behind it.
    const bob = await addUser(harness, ann, 'bob@example.org')
    const bobId = ((await (await bob.get('/api/me')).json()) as { id: string }).id
    const bobs = await subscribed(bob, '/bob')
    const key = await makeKey(bob)
    const program = await Tab.open(harness.service.url, { authorization: `Bearer ${key}` })
    program.send({ type: 'ai_chat_visible', visible: true })
    await program.settle()
    await happen('s_one', [{ userId: bobId, kind: 'shared', ref: 'x', about: 'Ann\r\nBcc: eve@example.org' }])
    await waitFor(() => service.to(bobs).length > 0 && mails.length > 0)
    expect(service.to(bobs)).toMatchObject([{ title: 'Ann Bcc: eve@example.org shared a chat with you' }])
    expect(mails).toHaveLength(1)
    expect(mails[0]).not.toMatch(/^Bcc:/im)
    expect(service.to(pushes)).toEqual([])

    tab.send({ type: 'ai_chat_visible', visible: false })
    await tab.settle()
    await happen('s_two', [approval('c2')])
    await waitFor(() => service.to(pushes).length > 0)
    await tab.close()
    await program.close()
  })

  test('an answered approval is mailed to nobody, nor what was seen or turned off; several of a chat are one', async () => {
    const pushes = await subscribed(ann, '/one')
    await settings({ ended: { push: true, mail: false }, mentioned: { push: false, mail: true } })
    await happen('s_one', [
      approval('c1'),
      { userId: annId, kind: 'ended', ref: 'p' },
      { userId: annId, kind: 'mentioned', ref: 'm', about: 'Bob' },
    ])
    await harness.agent.store.log.append('s_one', [], {
      approvalAnswered: { toolCallId: 'c1', answeredAt: Date.now(), optionId: 'allow', by: 'user' },
    })
    await waitFor(() => mails.length > 0)
    expect(mails[0]).toMatch(/^Subject: Sandlot: Bob mentioned you in a comment\r$/m)
    expect(mails[0]).not.toContain('ended')
    const titles = service.to(pushes).map((message) => (message as { title: string }).title)
    expect(titles).toHaveLength(1)
    expect(titles[0]).toMatch(/A chat waits for you|A prompt of yours has ended/)
    await happen('s_two', [approval('c2'), { userId: annId, kind: 'shared', ref: 'x', about: 'Bob' }])
    await waitFor(() => service.to(pushes).length > 1)
    expect(service.to(pushes)[1]).toMatchObject({
      title: 'A chat waits for you: run_shell_command',
      body: 'Bob shared a chat with you',
    })
  })

  test('what came while the service was down goes out once, and nothing that is older than an hour', async () => {
    const pushes = await subscribed(ann, '/one')
    await happen('s_one', [approval('c1')])
    await waitFor(() => mails.length > 0)
    await harness.service.close()
    await happen('s_old', [approval('c2')], Date.now() - 61 * 60_000)
    await happen('s_two', [approval('c3')])
    await harness.restart()
    await waitFor(() => mails.length > 1 && service.to(pushes).length > 1)
    await happen('s_three', [approval('c4')])
    await waitFor(() => mails.length > 2 && service.to(pushes).length > 2)
    expect(service.to(pushes)).toMatchObject([{ tag: 's_one' }, { tag: 's_two' }, { tag: 's_three' }])
    expect(mails.map((mail) => /\/s\/(\w+)/.exec(mail)?.[1])).toEqual(['s_one', 's_two', 's_three'])
    expect(await metric('push', 'dropped')).toBe(1)
  })

  test('a mail server that is away for a moment is asked again', async () => {
    refuseMails = 2
    await happen('s_one', [approval('c1')])
    await waitFor(() => mails.length > 0)
    expect(mails).toHaveLength(1)
  })
})

describe('a push service', () => {
  test('that knows the browser no more, redirects or hangs is dropped or waits, and no other waits for it', async () => {
    const [gone, moved, silent, busy, well] = await Promise.all(
      ['/gone', '/moved', '/silent', '/busy', '/well'].map((path) => subscribed(ann, path)),
    )
    if (!gone || !moved || !silent || !busy || !well) throw new Error('five browsers')
    for (const [pushes, status] of [
      [gone, 410],
      [moved, 302],
      [silent, 0],
      [busy, 503],
    ] as const)
      service.status.set(pushes.path, status)
    const test = await ann.post('/api/notices/test')
    const said = (await test.json()) as { push: { sent: number; problems: string[] }; mail: object }
    expect(said).toMatchObject({ push: { sent: 1 }, mail: { sent: true } })
    expect(said.push.problems.toSorted()).toEqual([
      expect.stringMatching(/answered 503\.$/),
      expect.stringMatching(/did not answer within 0\.3 s\.$/),
      expect.stringMatching(/does not know this browser any more\.$/),
      expect.stringMatching(/redirects, which is not followed\.$/),
    ])
    expect(await (await ann.get('/api/notices/settings')).json()).toMatchObject({ browsers: 3 })
    await happen('s_one', [approval('c1')])
    await waitFor(() => service.to(well).length > 1)
    // Those that failed rest, and are not asked again so soon.
    expect(service.to(silent)).toHaveLength(1)
    expect(service.to(busy)).toHaveLength(1)
    await waitFor(async () => (await metric('push', 'dropped')) === 2)
  })

  test.each([
    ['https://10.0.0.5/push', 'lies in a private network'],
    ['https://localhost.internal/push', 'lies in a private network'],
    ['https://169.254.169.254/latest', 'lies in a private network'],
    ['http://push.example.org/push', 'has an https address'],
    ['file:///etc/passwd', 'must be an https address'],
  ])('at %s is refused', async (endpoint, why) => {
    const { keys } = new PushBrowser(service, '/x').subscription
    const refused = await ann.post('/api/notices/push', { endpoint, keys })
    expect(refused.status).toBe(400)
    expect(((await refused.json()) as { message: string }).message).toContain(why)
  })

  test.each(['https://localhost:9/push', 'https://127.0.0.1:9/push', 'https://[::1]:9/push'])(
    'whose name leads to this machine, %s, is dropped and asked nothing',
    async (endpoint) => {
      const { keys } = new PushBrowser(service, '/x').subscription
      const push = openPush({ secret: 'x', subject: 'mailto:a@example.org' })
      const message = { title: 'A', body: '', tag: 's', url: '/' }
      expect(await push.send({ endpoint, keys }, message)).toMatchObject({
        is: 'gone',
        why: expect.stringMatching(/may not be used: .*(is not a public one|of a private network)/),
      })
      expect(() => push.check({ endpoint, keys })).toThrow('lies in a private network')
    },
  )

  test('is used with a key that begins with a zero, as every 256th does', () => {
    const push = openPush({ secret: 'secret 258', subject: 'mailto:a@example.org', loopback: true })
    expect(() => push.check(new PushBrowser(service, '/x').subscription)).not.toThrow()
  })

  test('cannot be told with keys that are no keys', async () => {
    const { endpoint, keys } = new PushBrowser(service, '/x').subscription
    const refused = await ann.post('/api/notices/push', {
      endpoint,
      keys: { ...keys, p256dh: 'A'.repeat(87) },
    })
    expect(refused.status).toBe(400)
    expect(await refused.json()).toMatchObject({ message: 'The keys of this subscription do not fit.' })
  })

  test('gets nothing for a browser that unsubscribed, that signed out, or whose next person signed in', async () => {
    const bob = await addUser(harness, ann, 'bob@example.org')
    const first = await subscribed(ann, '/first')
    const shared = await subscribed(ann, '/shared')
    const last = await subscribed(ann, '/last')
    expect((await bob.post('/api/notices/push', shared.subscription)).status).toBe(204)
    expect(await (await ann.get('/api/notices/settings')).json()).toMatchObject({ browsers: 2 })
    // Another one's is not one's own to end.
    const ofBob = { endpoint: shared.subscription.endpoint }
    const deleted = (user: Browser, body: object) =>
      fetch(`${harness.service.url}/api/notices/push`, {
        method: 'DELETE',
        headers: { cookie: user.cookie, origin: harness.service.url, 'content-type': 'application/json' },
        body: JSON.stringify(body),
      })
    await deleted(ann, ofBob)
    expect(await (await bob.get('/api/notices/settings')).json()).toMatchObject({ browsers: 1 })
    expect((await deleted(ann, { endpoint: first.subscription.endpoint })).status).toBe(204)
    await happen('s_one', [approval('c1')])
    await waitFor(() => service.to(last).length > 0)
    expect(service.pushed.map(({ path }) => path)).toEqual(['/last'])
    await bob.post('/api/sign-out')
    const again = await signedInAgain('bob@example.org')
    expect(await (await again.get('/api/notices/settings')).json()).toMatchObject({ browsers: 0 })
  })

  async function signedInAgain(email: string): Promise<Browser> {
    const response = await browser(harness.service.url, '').post('/api/sign-in', {
      email,
      password: 'battery staple',
    })
    return browser(harness.service.url, cookieOf(response))
  }
})

describe('the routes of notices', () => {
  test('are for people who are signed in, and tests have a limit', async () => {
    const key = await makeKey(ann)
    const asKey = { headers: { authorization: `Bearer ${key}` } }
    expect((await fetch(`${harness.service.url}/api/notices/settings`, asKey)).status).toBe(403)
    expect((await fetch(`${harness.service.url}/api/notices/settings`)).status).toBe(401)
    expect((await ann.put('/api/notices/settings', { approval: { push: true } })).status).toBe(400)
    const tests = await Promise.all(Array.from({ length: 6 }, () => ann.post('/api/notices/test')))
    expect(tests.filter(({ status }) => status === 200)).toHaveLength(5)
    expect(tests.filter(({ status }) => status === 429)).toHaveLength(1)
  })

  test('the key of pushes is the same after a restart', async () => {
    const key = async (): Promise<unknown> =>
      (await browser(harness.service.url, ann.cookie).get('/api/notices/push')).json()
    const before = await key()
    expect(before).toEqual({ key: expect.stringMatching(/^B[\w-]{86}$/) })
    await harness.restart()
    expect(await key()).toEqual(before)
  })
})
