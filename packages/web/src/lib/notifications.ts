/**
 * Notifications of the browser: whether there can be any, whether the person wants them here, and
 * showing one; and a sound, which needs neither HTTPS nor a permission.
 */
import { useSyncExternalStore } from 'react'
import { browserStorage } from './storage.ts'

const KEY = 'sandlot.notifications'

/**
 * `impossible`: this browser, or a page without HTTPS, has none. `blocked`: the browser is set
 * never to show any.
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
  const storage = browserStorage('local')
  storage.set(KEY, wanted)
  if (wanted === 'on') {
    await Notification.requestPermission()
    const sample = { body: 'Notifications will look like this.', tag: 'sample', onClick: () => undefined }
    if (notificationState() === 'on' && !notify('Notifications are on', sample))
      storage.set(KEY, 'impossible')
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

const SOUND_KEY = 'sandlot.sound'
const SOUNDED_KEY = 'sandlot.sounded'
/** One of several tabs plays the sound. */
const ONE_SOUND_MS = 1_000

function isSoundOn(): boolean {
  return browserStorage('local').get(SOUND_KEY) === 'on'
}

export function useIsSoundOn(): boolean {
  return useSyncExternalStore((listener) => {
    listeners.add(listener)
    return () => listeners.delete(listener)
  }, isSoundOn)
}

/** Turning it on plays it: browsers let a page sound only after a click. */
export function turnSound(on: boolean): void {
  browserStorage('local').set(SOUND_KEY, on ? 'on' : 'off')
  if (on) play()
  for (const listener of listeners) listener()
}

/** A short tone, if the person wants that. */
export function sound(): void {
  const storage = browserStorage('local')
  if (!isSoundOn() || Date.now() - Number(storage.get(SOUNDED_KEY)) < ONE_SOUND_MS) return
  storage.set(SOUNDED_KEY, String(Date.now()))
  play()
}

let audio: AudioContext | undefined

function play(): void {
  audio ??= new AudioContext()
  void audio.resume()
  const [tone, volume] = [audio.createOscillator(), audio.createGain()]
  tone.frequency.value = 660
  volume.gain.setValueAtTime(0.1, audio.currentTime)
  volume.gain.exponentialRampToValueAtTime(0.001, audio.currentTime + 0.4)
  tone.connect(volume).connect(audio.destination)
  tone.start()
  tone.stop(audio.currentTime + 0.4)
}
