/** Notifications of the browser: whether there can be any, whether the person wants them here, and showing one. */
import { useSyncExternalStore } from 'react'
import { browserStorage } from './storage.ts'

const KEY = 'sandlot.notifications'

/** `impossible`: this browser, or a page without HTTPS, has none. `blocked`: the browser was told never to. */
export type NotificationState = 'impossible' | 'blocked' | 'off' | 'on'

const listeners = new Set<() => void>()

export function notificationState(): NotificationState {
  if (!('Notification' in window) || !window.isSecureContext) return 'impossible'
  if (Notification.permission === 'denied') return 'blocked'
  return Notification.permission === 'granted' && browserStorage('local').get(KEY) === 'on' ? 'on' : 'off'
}

/** Turning them on asks the person, so it must come from a click. */
export async function turnNotifications(wanted: 'on' | 'off'): Promise<void> {
  if (wanted === 'on') await Notification.requestPermission()
  browserStorage('local').set(KEY, wanted)
  for (const listener of listeners) listener()
}

export function useNotificationState(): NotificationState {
  return useSyncExternalStore((listener) => {
    listeners.add(listener)
    return () => listeners.delete(listener)
  }, notificationState)
}

/**
 * Show one, if the person wants that. Of the same `tag` there is one at a time, whichever tab it comes from. On phones a
 * page cannot show one itself; that is logged.
 */
export function notify(title: string, options: { body: string; tag: string; onClick: () => void }): void {
  if (notificationState() !== 'on') return
  const { body, tag, onClick } = options
  try {
    const shown = new Notification(title, { body, tag, icon: '/favicon.svg' })
    shown.addEventListener('click', () => {
      window.focus()
      shown.close()
      onClick()
    })
  } catch (error) {
    console.warn('This browser shows no notifications of pages.', error)
  }
}
