/** Notices to this person, and pushes to this browser: `/service-worker.js` shows them. */
import { pushSubscription } from '@sandlot/shared/chat/notifications'
import { call } from './call.ts'

/**
 * State of this browser. `impossible`: it has no pushes, or this page has no HTTPS. `blocked`: its
 * settings forbid them.
 */
export type PushState = 'impossible' | 'blocked' | 'off' | 'on'

const WORKER = '/service-worker.js'

export async function pushState(): Promise<PushState> {
  if (!window.isSecureContext || !('serviceWorker' in navigator) || !('PushManager' in window))
    return 'impossible'
  if (Notification.permission === 'denied') return 'blocked'
  return (await current()) === null ? 'off' : 'on'
}

/**
 * Registers the worker of this origin: it shows that Sandlot is unreachable, and makes the page
 * installable. Nothing where the browser has no workers, or the page no HTTPS.
 */
export async function registerWorker(): Promise<void> {
  if (!window.isSecureContext || !('serviceWorker' in navigator)) return
  await navigator.serviceWorker.register(WORKER, { scope: '/' })
}

/**
 * Asks the person, so it must come from a click. Answers the state afterwards. Throws `ApiError`,
 * or what the browser throws where it reaches no push service.
 */
export async function subscribePush(): Promise<PushState> {
  const before = await pushState()
  if (before === 'impossible' || before === 'blocked') return before
  if ((await Notification.requestPermission()) !== 'granted') return pushState()
  await registerWorker()
  const { pushManager } = await navigator.serviceWorker.ready
  const { key } = await call('getPushKey')
  const old = await pushManager.getSubscription()
  // One with another key, of an earlier data folder, cannot be used any more.
  if (old !== null && keyOf(old) !== key) await old.unsubscribe()
  const subscription = await pushManager.subscribe({ userVisibleOnly: true, applicationServerKey: key })
  await call('subscribePush', { body: pushSubscription.parse(subscription.toJSON()) })
  return 'on'
}

/** Ends the pushes to this browser, also before signing out. */
export async function unsubscribePush(): Promise<void> {
  const subscription = await current()
  if (subscription === null) return
  const { endpoint } = subscription
  await subscription.unsubscribe()
  await call('unsubscribePush', { body: { endpoint } })
}

/**
 * Once signed in: pushes end with the sign-in that asked for them, so this one asks again where the
 * browser still has its subscription.
 */
export async function renewPush(): Promise<void> {
  if ((await pushState()) !== 'on' || Notification.permission !== 'granted') return
  await subscribePush()
}

async function current(): Promise<PushSubscription | null> {
  const registration = await navigator.serviceWorker.getRegistration('/')
  return (await registration?.pushManager.getSubscription()) ?? null
}

/** Base64url, as the service has it. */
function keyOf(subscription: PushSubscription): string {
  const bytes = new Uint8Array(subscription.options.applicationServerKey ?? new ArrayBuffer(0))
  return btoa(String.fromCodePoint(...bytes))
    .replaceAll('+', '-')
    .replaceAll('/', '_')
    .replaceAll('=', '')
}
