/**
 * HTTP routes of a person's notifications: choices by kind and channel, browsers that receive
 * pushes, and a test notification.
 */
import {
  type NotificationSettings,
  notificationChoice,
  pushEnd,
  pushSubscription,
} from '@sandlot/shared/chat/notifications'
import { Hono } from 'hono'
import type { AppEnv, Ctx, Parts } from '../context.ts'
import { readBody, requireCaller, requireSignIn } from '../request.ts'

export function notificationsRoutes(parts: Parts): Hono<AppEnv> {
  const { accounts, notifications, push, limits, sendMail } = parts
  const settings = async (c: Ctx): Promise<NotificationSettings> => {
    const { account } = requireSignIn(c)
    const found = await accounts.notifications.recipient(account.id)
    // The account was there a moment ago, and `requireCaller` refuses the next request.
    if (found === undefined) throw new Error('notices: the caller has no account')
    return { choice: found.choice, mail: sendMail !== undefined, browsers: found.browsers.length }
  }
  return new Hono<AppEnv>()
    .use(requireCaller(parts))
    .get('/settings', async (c) => c.json(await settings(c)))
    .put('/settings', async (c) => {
      const { account } = requireSignIn(c)
      await accounts.notifications.choose(account.id, await readBody(c, notificationChoice))
      return c.json(await settings(c))
    })
    .get('/push', (c) => c.json({ key: push.publicKey }))
    .post('/push', async (c) => {
      requireSignIn(c)
      const subscription = await readBody(c, pushSubscription)
      push.check(subscription)
      // Once the body has arrived: the sign-in may be another one since.
      const { account, signInId } = requireSignIn(c)
      await accounts.notifications.subscribe(account.id, signInId, subscription)
      return c.body(null, 204)
    })
    .delete('/push', async (c) => {
      const { account } = requireSignIn(c)
      const { endpoint } = await readBody(c, pushEnd)
      await accounts.notifications.unsubscribe(account.id, endpoint)
      return c.body(null, 204)
    })
    .post('/test', async (c) => {
      const { account } = requireSignIn(c)
      await limits.notificationTest(account.id)
      return c.json(await notifications.test(account.id))
    })
}
