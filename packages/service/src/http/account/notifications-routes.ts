/**
 * HTTP routes of a person's notifications: choices by kind and channel, browsers that receive
 * pushes, and a test notification.
 */
import { type NotificationSettings } from '@sandlot/shared/chat/notifications'
import type { Ctx, Parts } from '../context.ts'
import type { Handlers } from '../actions.ts'
import { requireSignIn } from '../request.ts'

export function notificationsHandlers(parts: Parts) {
  const { accounts, notifications, push, limits, sendMail } = parts
  const settings = async (c: Ctx): Promise<NotificationSettings> => {
    const { account } = requireSignIn(c)
    const found = await accounts.notifications.recipient(account.id)
    // The account was there a moment ago, and `requireCaller` refuses the next request.
    if (found === undefined) throw new Error('notices: the caller has no account')
    return { choice: found.choice, mail: sendMail !== undefined, browsers: found.browsers.length }
  }
  return {
    getNotifications: async (c) => c.json(await settings(c)),
    putNotifications: async (c, body) => {
      const { account } = c.var.caller
      await accounts.notifications.choose(account.id, await body())
      return c.json(await settings(c))
    },
    getPushKey: (c) => c.json({ key: push.publicKey }),
    subscribePush: async (c, body) => {
      const subscription = await body()
      push.check(subscription)
      // Once the body has arrived: the sign-in may be another one since.
      const { account, signInId } = requireSignIn(c)
      await accounts.notifications.subscribe(account.id, signInId, subscription)
      return c.body(null, 204)
    },
    unsubscribePush: async (c, body) => {
      const { account } = c.var.caller
      const { endpoint } = await body()
      await accounts.notifications.unsubscribe(account.id, endpoint)
      return c.body(null, 204)
    },
    testNotifications: async (c) => {
      const { account } = c.var.caller
      await limits.notificationTest(account.id)
      return c.json(await notifications.test(account.id))
    },
  } satisfies Partial<Handlers>
}
