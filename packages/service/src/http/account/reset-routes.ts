/** A forgotten password: a link by mail, and the new password behind it. */
import { SandlotError, messageOf } from '@sandlot/shared/base/errors'
import { NOT_SIGNED_IN } from '@sandlot/shared/admin/audit'
import type { AuditFrom } from '@sandlot/shared/account/agent-user'
import { userOf } from '../../auth/agent-user.ts'
import type { Parts } from '../context.ts'
import type { Handlers } from '../actions.ts'

/**
 * The link is made from the public address alone: a request's own `Host` is its sender's word, and
 * would send the token elsewhere.
 */
export function canReset({ config, sendMail }: Pick<Parts, 'config' | 'sendMail'>): boolean {
  return sendMail !== undefined && config.publicUrl !== undefined
}

export function resetHandlers(parts: Parts) {
  const { accounts, config, limits, log, sendMail, sockets } = parts

  const sendLink = async (email: string, from: AuditFrom): Promise<void> => {
    const begun = await accounts.passwords.beginReset(email)
    if (begun === undefined || (config.localSignIn === 'admins' && begun.account.role !== 'admin')) return
    const { account, token } = begun
    await sendMail?.({
      to: account.email,
      subject: 'A new password for Sandlot',
      text: `Hello ${account.name},\n\na new password was asked for. Set it within an hour:\n\n${config.publicUrl}/reset?token=${token}\n\nIf that was not you, ignore this message: your password stays as it is.\n`,
    })
    await accounts.audit.write({
      who: NOT_SIGNED_IN,
      from,
      what: 'password_reset_sent',
      whom: userOf(account),
    })
    log.info({ user: account.id }, 'sent a link for a new password')
  }

  return {
    beginReset: async (c, body) => {
      const { email } = await body()
      if (!canReset(parts))
        throw new SandlotError(
          'not_implemented',
          'This Sandlot sends no mail. An administrator can give you a new password.',
        )
      await limits.beginReset(c.var.address, email)
      // Not awaited: its duration would reveal whether there is such an account.
      sendLink(email, { address: c.var.address }).catch((error: unknown) =>
        log.warn({ error: messageOf(error) }, 'a link for a new password was not sent'),
      )
      return c.body(null, 204)
    },
    finishReset: async (c, body) => {
      const { token, password } = await body()
      await limits.beginSignIn(c.var.address)
      const account = await accounts.passwords.finishReset(token, password)
      sockets.signInsEnded(account.id)
      const from = { address: c.var.address }
      const { id, name } = account
      await accounts.audit.write({
        who: { id, name, email: account.email },
        from,
        what: 'password_reset',
        whom: userOf(account),
      })
      log.info({ user: account.id }, 'set a new password by a link')
      return c.body(null, 204)
    },
  } satisfies Partial<Handlers>
}
