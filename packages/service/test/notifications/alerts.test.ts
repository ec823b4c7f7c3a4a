/** Alerts of a whole service, to a real SMTP server and a real receiver of webhooks. */
import { createHmac } from 'node:crypto'
import { once } from 'node:events'
import { readFile, writeFile } from 'node:fs/promises'
import { createServer, type IncomingHttpHeaders, type Server } from 'node:http'
import { join } from 'node:path'
import type { AddressInfo } from 'node:net'
import { text } from 'node:stream/consumers'
import { alertTest, alertsView } from '@sandlot/shared/admin/alerts'
import { SMTPServer } from 'smtp-server'
import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from 'vitest'
import { readServiceConfig } from '../../src/config.ts'
import {
  addUser,
  type Browser,
  browser,
  type Harness,
  setUp,
  startHarness,
  waitFor,
} from '../support/harness.ts'

const TIMES = {
  checkMs: 20,
  raiseMs: 60,
  clearMs: 60,
  remindMs: 3_600_000,
  retry: { firstMs: 20, longestMs: 20 },
}

let smtp: SMTPServer
let mails: { to: string; raw: string }[] = []
let refuses = false
let receiver: Server
let posts: { headers: IncomingHttpHeaders; body: string; url: string }[] = []
let status = 204

beforeAll(async () => {
  smtp = new SMTPServer({
    authOptional: true,
    disabledCommands: ['STARTTLS'],
    onData(stream, { envelope }, done) {
      let raw = ''
      stream.on('data', (piece: Buffer) => (raw += piece.toString()))
      stream.on('end', () => {
        if (refuses) return done(new Error('not now'))
        for (const { address } of envelope.rcptTo) mails.push({ to: address, raw })
        done()
      })
    },
  })
  smtp.on('error', () => undefined)
  await new Promise<void>((resolve) => smtp.listen(0, '127.0.0.1', () => resolve()))
  receiver = createServer((request, response) => {
    void text(request).then((body) => {
      if (status === 204) posts.push({ headers: request.headers, body, url: request.url ?? '' })
      response.writeHead(status).end()
    })
  }).listen(0, '127.0.0.1')
  await once(receiver, 'listening')
})
afterAll(async () => {
  receiver.close()
  await new Promise<void>((resolve) => smtp.close(() => resolve()))
})

let harness: Harness
let admin: Browser
beforeEach(async () => {
  mails = []
  posts = []
  refuses = false
  status = 204
  const { port } = smtp.server.address() as AddressInfo
  const config = readServiceConfig({
    SANDLOT_SMTP_URL: `smtp://127.0.0.1:${port}`,
    SANDLOT_MAIL_FROM: 'sandlot@example.org',
    SANDLOT_ALERT_EMAIL: 'ops@example.org, night@example.org',
    SANDLOT_ALERT_WEBHOOK: `http://127.0.0.1:${(receiver.address() as AddressInfo).port}/hook?token=secret`,
  })
  harness = await startHarness({ mail: config.mail, alerts: config.alerts }, { alertTimes: TIMES })
  admin = await setUp(harness)
})
afterEach(() => harness.close())

/** At the service that runs now. */
const view = async () => {
  const page = browser(harness.service.url, admin.cookie)
  return alertsView.parse(await (await page.get('/api/admin/alerts')).json())
}
const subjects = (): string[] => mails.map(({ raw }) => /^Subject: (.*)\r$/m.exec(raw)?.[1] ?? '')
/** The agent's status. */
const engine = (ok: boolean): void => {
  const message = ok ? 'fine' : 'The Docker engine does not answer.'
  harness.agent.status = { ...harness.agent.status, reasons: [{ part: 'sandbox', ok, message }] }
}

test('what fails is said once by every way, and once more when it is well again', async () => {
  engine(false)
  await waitFor(() => mails.length === 2 && posts.length === 1)
  expect(mails.map(({ to }) => to).toSorted()).toEqual(['night@example.org', 'ops@example.org'])
  expect(subjects()).toEqual(['Sandlot: sandboxes do not work', 'Sandlot: sandboxes do not work'])
  expect(mails[0]?.raw).toContain('The Docker engine does not answer.')
  expect(await view()).toMatchObject({
    email: ['ops@example.org', 'night@example.org'],
    webhook: `127.0.0.1:${(receiver.address() as AddressInfo).port}`,
    raised: [{ kind: 'engine', message: 'The Docker engine does not answer.', problem: null }],
  })
  engine(true)
  await waitFor(() => mails.length === 4 && posts.length === 2)
  expect(subjects().slice(2)).toEqual(['Sandlot: sandboxes work again', 'Sandlot: sandboxes work again'])
  expect((await view()).raised).toEqual([])
  expect(posts.map(({ body }) => (JSON.parse(body) as { type: string }).type)).toEqual([
    'alert.raised',
    'alert.cleared',
  ])
})

test('a post is signed with the key of the data folder, and says nothing twice over a restart', async () => {
  engine(false)
  await waitFor(() => mails.length === 2 && posts.length === 1)
  const { headers, body, url } = posts[0] ?? { headers: {}, body: '', url: '' }
  const key = (await readFile(join(harness.folder, 'keys/alerts'), 'utf8')).trim()
  const signed = `${String(headers['webhook-id'])}.${String(headers['webhook-timestamp'])}.${body}`
  expect(headers['webhook-signature']).toBe(`v1,${createHmac('sha256', key).update(signed).digest('base64')}`)
  expect(url).toBe('/hook?token=secret')
  expect(JSON.parse(body)).toMatchObject({
    type: 'alert.raised',
    text: expect.stringContaining('sandboxes do not work'),
    data: { kind: 'engine', url: expect.stringContaining('/settings/overview') },
  })
  await harness.restart()
  await waitFor(async () => (await view()).raised.length === 1)
  // Long enough for it to be raised again, if it were.
  await harness.agent.drop()
  await waitFor(() => posts.length === 2)
  expect(subjects().filter((subject) => subject.includes('sandboxes'))).toHaveLength(2)
})

test('what is not taken is sent again until it is, and the page says why it is late', async () => {
  refuses = true
  status = 500
  engine(false)
  const problemOf = async (): Promise<string> => (await view()).raised[0]?.problem ?? ''
  await waitFor(async () => /The mail server .* answered 500\.$/s.test(await problemOf()))
  expect(await problemOf()).not.toContain('secret')
  await harness.restart()
  refuses = false
  status = 204
  await waitFor(() => mails.length === 2 && posts.length === 1)
  await waitFor(async () => (await view()).raised[0]?.problem === null)
})

test('an agent that does not answer is said, and nothing of what only it knows', async () => {
  engine(false)
  await waitFor(() => mails.length === 2)
  await harness.agent.drop()
  await waitFor(() => mails.length === 4)
  expect(subjects().slice(2)).toEqual([
    'Sandlot: the agent does not answer',
    'Sandlot: the agent does not answer',
  ])
  expect((await view()).raised.map(({ kind }) => kind)).toEqual(['engine', 'agent'])
})

test('a backup that failed is said until one is made', async () => {
  const file = join(harness.folder, 'backup-status.json')
  await writeFile(file, JSON.stringify({ failed: { at: 'x', message: 'There is no space in /mnt.' } }))
  await waitFor(() => mails.length === 2)
  expect(subjects()[0]).toBe('Sandlot: a backup failed')
  // Everybody may read /readyz.
  expect(await (await fetch(`${harness.service.url}/readyz`)).text()).not.toContain('/mnt')
  await writeFile(file, JSON.stringify({ last: { at: 'x', file: '/mnt/a.tar', bytes: 1, workspaces: 0 } }))
  await waitFor(() => mails.length === 4)
})

test('a test goes to each of them, for administrators only, and says what went wrong', async () => {
  status = 302
  const sent = alertTest.parse(await (await admin.post('/api/admin/alerts/test')).json())
  const host = `127.0.0.1:${(receiver.address() as AddressInfo).port}`
  expect(sent.sent).toEqual([
    { to: 'ops@example.org', problem: null },
    { to: 'night@example.org', problem: null },
    { to: host, problem: `${host} answered 302.` },
  ])
  expect(subjects()).toEqual(['Sandlot: alerts reach you here', 'Sandlot: alerts reach you here'])
  const bob = await addUser(harness, admin, 'bob@example.org')
  expect((await bob.get('/api/admin/alerts')).status).toBe(403)
  expect((await bob.post('/api/admin/alerts/test')).status).toBe(403)
})

test('settings that cannot work are refused at the start', () => {
  const read = (more: Record<string, string>) => () => readServiceConfig(more)
  expect(read({ SANDLOT_ALERT_EMAIL: 'ops@example.org' })).toThrow('SANDLOT_SMTP_URL')
  const smtpSet = { SANDLOT_SMTP_URL: 'smtp://127.0.0.1', SANDLOT_MAIL_FROM: 'a@example.org' }
  expect(read({ ...smtpSet, SANDLOT_ALERT_EMAIL: 'ops' })).toThrow('SANDLOT_ALERT_EMAIL')
  expect(read({ SANDLOT_ALERT_WEBHOOK: 'hooks.example.org' })).toThrow('SANDLOT_ALERT_WEBHOOK')
})
