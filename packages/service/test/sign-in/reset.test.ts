/** A forgotten password, with a real SMTP server. */
import { type AddressInfo, createServer } from 'node:net'
import { SMTPServer } from 'smtp-server'
import { afterEach, beforeEach, expect, test } from 'vitest'
import {
  ANN,
  type Browser,
  type Harness,
  addUser,
  browser,
  setUp,
  startHarness,
  waitFor,
} from '../support/harness.ts'

let smtp: SMTPServer
let mails: string[]
/** The address of a free port. */
let address: { port: number; publicUrl: string }
let harness: Harness
let ann: Browser
let page: Browser

const start = async (config: Parameters<typeof startHarness>[0]): Promise<void> => {
  harness = await startHarness(config)
  ann = await setUp(harness)
  page = browser(harness.service.url, '')
}

beforeEach(async () => {
  mails = []
  const probe = createServer()
  await new Promise<void>((resolve) => {
    probe.listen(0, '127.0.0.1', () => resolve())
  })
  const { port } = probe.address() as AddressInfo
  await new Promise<void>((resolve) => probe.close(() => resolve()))
  address = { port, publicUrl: `http://127.0.0.1:${port}` }
  smtp = new SMTPServer({
    authOptional: true,
    disabledCommands: ['STARTTLS'],
    onData(stream, _session, done) {
      let raw = ''
      stream.on('data', (piece: Buffer) => (raw += piece.toString()))
      stream.on('end', () => {
        mails.push(raw)
        done()
      })
    },
  })
  await new Promise<void>((resolve) => {
    smtp.listen(0, '127.0.0.1', () => resolve())
  })
})
afterEach(async () => {
  await harness.close()
  await new Promise<void>((resolve) => smtp.close(() => resolve()))
})

const mail = () => ({
  host: '127.0.0.1',
  port: (smtp.server.address() as AddressInfo).port,
  secure: false,
  auth: undefined,
  from: { name: 'Sandlot', address: 'sandlot@example.org' },
})
/** The token in the link of a mail, which is quoted-printable. */
const tokenIn = (raw: string): string =>
  /\/reset\?token=([a-z0-9]+)/.exec(raw.replaceAll('=\r\n', '').replaceAll('=3D', '='))?.[1] ?? ''
const signIn = (password: string) => page.post('/api/sign-in', { email: ANN.email, password })

test('a link by mail sets a new password once, and ends all sign-ins', async () => {
  await start({ mail: mail(), ...address })
  expect(await (await page.get('/api/sign-in/providers')).json()).toMatchObject({ reset: true })
  expect((await page.post('/api/reset', { email: ' ANN@example.org ' })).status).toBe(204)
  await waitFor(() => mails.length === 1)
  expect(mails[0]).toContain(`${address.publicUrl}/reset`)
  const token = tokenIn(mails[0] ?? '')
  const set = { token, password: 'a new password' }
  expect((await page.post('/api/reset/password', set)).status).toBe(204)
  expect((await ann.get('/api/me')).status).toBe(401)
  expect((await signIn(ANN.password)).status).toBe(401)
  expect((await signIn('a new password')).status).toBe(200)
  const again = await page.post('/api/reset/password', set)
  expect([again.status, await again.json()]).toMatchObject([403, { code: 'forbidden' }])
})

test('nobody learns whose address has an account, and a later link replaces the earlier', async () => {
  await start({ mail: mail(), ...address })
  expect((await page.post('/api/reset', { email: 'stranger@example.org' })).status).toBe(204)
  await addUser(harness, ann, 'bob@example.org')
  for (const sent of [1, 2]) {
    expect((await page.post('/api/reset', { email: ANN.email })).status).toBe(204)
    await waitFor(() => mails.length === sent)
  }
  expect(mails.every((raw) => raw.includes('ann@example.org'))).toBe(true)
  const first = await page.post('/api/reset/password', {
    token: tokenIn(mails[0] ?? ''),
    password: 'one two three',
  })
  expect(first.status).toBe(403)
  await page.post('/api/reset', { email: ANN.email })
  const often = await page.post('/api/reset', { email: ANN.email })
  expect(often.status).toBe(429)
})

test('where only administrators have passwords, others get no link', async () => {
  await start({ mail: mail(), ...address, localSignIn: 'admins' })
  await ann.post('/api/users', { name: 'Bob', email: 'bob@example.org', password: 'battery staple' })
  await page.post('/api/reset', { email: 'bob@example.org' })
  await page.post('/api/reset', { email: ANN.email })
  await waitFor(() => mails.length === 1)
  expect(mails[0]).toContain('ann@example.org')
})

test.each([
  { without: 'a mail server', config: () => ({ ...address }) },
  // The link would be made from what the request says of its host.
  { without: 'a public address', config: () => ({ mail: mail() }) },
])('without $without there is none', async ({ config }) => {
  await start(config())
  expect(await (await page.get('/api/sign-in/providers')).json()).toMatchObject({ reset: false })
  const refused = await page.post('/api/reset', { email: ANN.email })
  expect([refused.status, await refused.json()]).toMatchObject([501, { code: 'not_implemented' }])
})
