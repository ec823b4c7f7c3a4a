/**
 * The only file that imports nodemailer: plain text to one address, by the operator's SMTP server.
 */
import { createGate } from '@sandlot/shared/async/keyed-lock'
import { isLoopback } from '@sandlot/shared/node/addresses'
import { createTransport } from 'nodemailer'
import { z } from 'zod'

export interface MailSettings {
  host: string
  port: number
  /** TLS from the first byte on, as of `smtps:`. */
  secure: boolean
  auth: { user: string; pass: string } | undefined
  from: { name: string; address: string }
}

interface Mail {
  /** One address. */
  to: string
  /** Line breaks and other control characters in it become spaces. */
  subject: string
  text: string
}

/**
 * Resolves when the server has accepted it. Throws `MailError`, at the latest after
 * `MAIL_TIMEOUT_MS`.
 */
export type SendMail = (mail: Mail) => Promise<void>

/** The message is for people: it names the server and neither the address nor the password. */
class MailError extends Error {
  override readonly name = 'MailError'
}

const MAIL_TIMEOUT_MS = 20_000
const MOST_AT_ONCE = 4
const MAX_SUBJECT_CHARS = 200

const address = z.email().max(254)

export function mailSender(settings: MailSettings, timeoutMs = MAIL_TIMEOUT_MS): SendMail {
  const { host, port, secure, auth, from } = settings
  const server = `The mail server ${host}:${port}`
  const transport = createTransport({
    host,
    port,
    secure,
    auth,
    // STARTTLS is used where it is offered; a password goes out in the clear only to this machine.
    requireTLS: auth !== undefined && !secure && !isLoopback(host),
    disableFileAccess: true,
    disableUrlAccess: true,
    socketCloseTimeout: 1_000,
  })
  const gate = createGate(MOST_AT_ONCE)

  return async function sendMail({ to, subject, text }) {
    const read = address.safeParse(to)
    if (!read.success) throw new MailError('This is not one e-mail address.')
    const signal = AbortSignal.timeout(timeoutMs)
    try {
      await gate(async () => {
        await transport.sendMail({
          from,
          // An object is one address, whatever characters it has.
          to: { name: '', address: read.data },
          subject: subject.replaceAll(/\p{Cc}+/gu, ' ').slice(0, MAX_SUBJECT_CHARS),
          text,
          // So that no out-of-office answers come back.
          headers: { 'auto-submitted': 'auto-generated' },
          signal,
        })
      }, signal)
    } catch (error) {
      const why = signal.aborted ? `did not answer within ${timeoutMs / 1_000} s` : reasonOf(error)
      throw new MailError(`${server} ${why}.`, { cause: error })
    }
  }
}

function reasonOf(error: unknown): string {
  const code = error instanceof Error && 'code' in error ? error.code : undefined
  switch (code) {
    case 'EAUTH':
    case 'ENOAUTH':
      return 'refused the user name or the password'
    case 'ETLS':
      return 'offers no encryption that can be used, without which no password is sent'
    case 'EENVELOPE':
    case 'EMESSAGE':
      return 'refused the message or its address'
    default:
      if (error instanceof Error && /certificate/i.test(error.message))
        return 'shows a certificate that is not trusted (NODE_EXTRA_CA_CERTS adds an authority)'
      return 'could not be reached'
  }
}
