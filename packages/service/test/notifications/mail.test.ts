import { createServer, type AddressInfo } from 'node:net'
import { SMTPServer, type SMTPServerOptions } from 'smtp-server'
import { afterEach, describe, expect, test } from 'vitest'
import { readServiceConfig } from '../../src/config.ts'
import { mailSender } from '../../src/notifications/mail.ts'
import type { MailSettings } from '../../src/notifications/mail.ts'

interface Received {
  from: string
  to: string[]
  raw: string
}

const closing: (() => Promise<void>)[] = []
afterEach(async () => {
  for (const close of closing.splice(0)) await close()
})

async function mailServer(options: SMTPServerOptions = {}): Promise<{ port: number; received: Received[] }> {
  const received: Received[] = []
  const server = new SMTPServer({
    authOptional: true,
    disabledCommands: ['STARTTLS'],
    allowInsecureAuth: true,
    onAuth({ username, password }, _session, done) {
      if (username === 'sandlot' && password === 'p@ss/word') done(null, { user: username })
      else done(new Error('no'))
    },
    onData(stream, { envelope }, done) {
      let raw = ''
      stream.on('data', (piece: Buffer) => (raw += piece.toString()))
      stream.on('end', () => {
        const from = envelope.mailFrom === false ? '' : envelope.mailFrom.address
        received.push({ from, to: envelope.rcptTo.map(({ address }) => address), raw })
        done()
      })
    },
    ...options,
  })
  server.on('error', () => undefined)
  await new Promise<void>((resolve) => {
    server.listen(0, '127.0.0.1', () => resolve())
  })
  closing.push(() => new Promise((resolve) => server.close(() => resolve())))
  return { port: (server.server.address() as AddressInfo).port, received }
}

function settings(port: number, more: Partial<MailSettings> = {}): MailSettings {
  return {
    host: '127.0.0.1',
    port,
    secure: false,
    auth: undefined,
    from: { name: 'Sandlot', address: 'sandlot@example.org' },
    ...more,
  }
}

const HELLO = { to: 'ann@example.org', subject: 'Hello', text: 'A line.\nAnother one: größer.\n' }

describe('mail', () => {
  test('reaches a server with a sign-in, whole', async () => {
    const { port, received } = await mailServer({ authOptional: false })
    await mailSender(settings(port, { auth: { user: 'sandlot', pass: 'p@ss/word' } }))(HELLO)
    expect(received).toMatchObject([{ from: 'sandlot@example.org', to: ['ann@example.org'] }])
    const raw = received[0]?.raw ?? ''
    expect(raw).toMatch(/^From: Sandlot <sandlot@example\.org>\r$/m)
    expect(raw).toMatch(/^To: ann@example\.org\r$/m)
    expect(raw).toMatch(/^Subject: Hello\r$/m)
    expect(raw).toMatch(/^Auto-Submitted: auto-generated\r$/m)
    expect(raw).toContain('gr=C3=B6=C3=9Fer')
  })

  test('has no header and no recipient that somebody writes into it', async () => {
    const { port, received } = await mailServer()
    const send = mailSender(settings(port))
    await send({
      ...HELLO,
      subject: 'Hi\r\nBcc: eve@example.org\r\n\r\nbody\0',
      text: '\r\n.\r\nMAIL FROM:<x@y.z>\r\n',
    })
    expect(received).toHaveLength(1)
    expect(received[0]?.to).toEqual(['ann@example.org'])
    const [head = ''] = (received[0]?.raw ?? '').split('\r\n\r\n')
    expect(head).toMatch(/^Subject: Hi Bcc: eve@example\.org body\s*$/m)
    expect(head).not.toMatch(/^Bcc:/im)
    for (const to of [
      'ann@example.org, eve@example.org',
      'ann@example.org\r\nRCPT TO:<eve@example.org>',
      'Eve <eve@example.org>',
      'ann@example.org>',
      '',
    ]) {
      await expect(send({ ...HELLO, to })).rejects.toThrow('This is not one e-mail address.')
    }
    expect(received).toHaveLength(1)
  })

  test('a server that hangs, is gone, refuses or shows a false certificate has its sentence', async () => {
    const silent = createServer((socket) => socket.on('error', () => undefined))
    await new Promise<void>((resolve) => {
      silent.listen(0, '127.0.0.1', () => resolve())
    })
    const { port: silentPort } = silent.address() as AddressInfo
    await expect(mailSender(settings(silentPort), 200)(HELLO)).rejects.toThrow(
      `The mail server 127.0.0.1:${silentPort} did not answer within 0.2 s.`,
    )
    await new Promise((resolve) => silent.close(resolve))
    await expect(mailSender(settings(silentPort))(HELLO)).rejects.toThrow('could not be reached')

    const { port } = await mailServer({
      onRcptTo: (_address, _session, done) => done(new Error('no such mailbox')),
    })
    const wrong = mailSender(settings(port, { auth: { user: 'sandlot', pass: 'secret-one' } }))(HELLO)
    await expect(wrong).rejects.toThrow(/refused the user name or the password\.$/)
    await expect(wrong).rejects.not.toThrow(/secret-one/)
    await expect(wrong).rejects.toMatchObject({ name: 'MailError' })
    await expect(mailSender(settings(port))(HELLO)).rejects.toThrow('refused the message or its address')

    const self = await mailServer({ secure: true, disabledCommands: [] })
    await expect(mailSender(settings(self.port, { secure: true }))(HELLO)).rejects.toThrow('certificate')
    expect(self.received).toEqual([])
  })

  test('a password leaves this machine by TLS only', async () => {
    const { port, received } = await mailServer({ authOptional: false })
    const auth = { user: 'sandlot', pass: 'p@ss/word' }
    // This machine by a name that could be another one's.
    await expect(mailSender(settings(port, { host: '0.0.0.0', auth }))(HELLO)).rejects.toThrow('encryption')
    expect(received).toEqual([])
  })
})

describe('the settings of mail', () => {
  const read = (SANDLOT_SMTP_URL: string, SANDLOT_MAIL_FROM = 'sandlot@example.org') =>
    readServiceConfig({ SANDLOT_SMTP_URL, SANDLOT_MAIL_FROM }).mail

  test('are an address with a sign-in, and a sender', () => {
    expect(readServiceConfig({}).mail).toBeUndefined()
    expect(read('smtp://sandlot:p%40ss%2Fword@mail.example.org', 'Our Sandlot <chat@example.org>')).toEqual({
      host: 'mail.example.org',
      port: 587,
      secure: false,
      auth: { user: 'sandlot', pass: 'p@ss/word' },
      from: { name: 'Our Sandlot', address: 'chat@example.org' },
    })
    expect(read('smtps://mail.example.org')).toMatchObject({ port: 465, secure: true, auth: undefined })
    expect(read('smtp://[::1]:25')).toMatchObject({ host: '::1', port: 25, from: { name: 'Sandlot' } })
  })

  test.each([
    ['https://mail.example.org', 'a@example.org', /SANDLOT_SMTP_URL: must be smtp:/],
    ['mail.example.org', 'a@example.org', /SANDLOT_SMTP_URL: must be smtp:/],
    ['smtp://user@mail.example.org', 'a@example.org', /both a user and a password/],
    ['smtp://user:a%zz@mail.example.org', 'a@example.org', /%25/],
    ['smtp://user:a/b@mail.example.org', 'a@example.org', /SANDLOT_SMTP_URL: /],
    ['smtp://mail.example.org/?tls.rejectUnauthorized=false', 'a@example.org', /ends after the host/],
    ['smtp://mail.example.org', 'a@example.org, b@example.org', /SANDLOT_MAIL_FROM: must be/],
    ['smtp://mail.example.org', 'A <a@example.org>\nBcc: b@example.org', /SANDLOT_MAIL_FROM: must be/],
    ['smtp://mail.example.org', '', /SANDLOT_MAIL_FROM: must be set/],
  ])('%s and %s stop the start', (url, from, problem) => {
    expect(() => read(url, from)).toThrow(problem)
  })
})
