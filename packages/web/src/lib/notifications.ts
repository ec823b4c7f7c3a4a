/**
 * Notifications of the browser: whether there can be any, whether the person wants them here, and
 * showing one.
 */
import { useSyncExternalStore } from 'react'
import { browserStorage } from './storage.ts'

const KEY = 'sandlot.notifications'

/**
 * `impossible`: this browser, or a page without HTTPS, has none. `blocked`: the browser was told
 * never to.
 */
type NotificationState = 'impossible' | 'blocked' | 'off' | 'on'

const listeners = new Set<() => void>()

function notificationState(): NotificationState {
  if (!('Notification' in window) || !window.isSecureContext) return 'impossible'
  if (Notification.permission === 'denied') return 'blocked'
  const wanted = browserStorage('local').get(KEY)
  if (wanted === 'impossible') return 'impossible'
  return Notification.permission === 'granted' && wanted === 'on' ? 'on' : 'off'
}

/**
 * Turning them on asks the person, so it must come from a click; then one is shown, which is also
 * how it is found out that this browser lets no page show any, as on phones.
 */
export async function turnNotifications(wanted: 'on' | 'off'): Promise<void> {
  const kept = browserStorage('local')
  kept.set(KEY, wanted)
  if (wanted === 'on') {
    await Notification.requestPermission()
    const sample = { body: 'Sandlot tells you like this.', tag: 'sample', onClick: () => undefined }
    if (notificationState() === 'on' && !notify('Notifications are on', sample)) kept.set(KEY, 'impossible')
  }
  for (const listener of listeners) listener()
}

export function useNotificationState(): NotificationState {
  return useSyncExternalStore((listener) => {
    listeners.add(listener)
    return () => listeners.delete(listener)
  }, notificationState)
}

/**
 * Show one, if the person wants that; false when this browser refused. Of the same `tag` there is
 * one at a time, whichever tab it comes from.
 */
export function notify(title: string, options: { body: string; tag: string; onClick: () => void }): boolean {
  if (notificationState() !== 'on') return true
  const { body, tag, onClick } = options
  try {
    const shown = new Notification(title, { body, tag, icon: '/favicon.svg' })
    shown.addEventListener('click', () => {
      window.focus()
      shown.close()
      onClick()
    })
    return true
  } catch (error) {
    console.warn('This browser shows no notifications of pages.', error)
    return false
  }
}
