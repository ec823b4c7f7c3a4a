import { useSyncExternalStore } from 'react'
import { browserStorage } from './storage.ts'

/** The same key and rule as public/before-paint.js, which runs before the first paint. */
const KEY = 'sandlot.theme'
export const THEMES = ['light', 'dark', 'system'] as const
export type Theme = (typeof THEMES)[number]

const listeners = new Set<() => void>()

function isTheme(text: string | null): text is Theme {
  return THEMES.some((theme) => theme === text)
}

function chosenTheme(): Theme {
  const stored = browserStorage('local').get(KEY)
  return isTheme(stored) ? stored : 'system'
}

function paint(): void {
  const choice = chosenTheme()
  const dark =
    choice === 'dark' || (choice === 'system' && matchMedia('(prefers-color-scheme: dark)').matches)
  document.documentElement.dataset['theme'] = dark ? 'dark' : 'light'
  for (const listener of listeners) listener()
}

export function setTheme(theme: Theme): void {
  browserStorage('local').set(KEY, theme)
  paint()
}

/** Follow the system, and other tabs. Call once. */
export function watchTheme(): void {
  matchMedia('(prefers-color-scheme: dark)').addEventListener('change', paint)
  window.addEventListener('storage', (event) => {
    if (event.key === KEY) paint()
  })
  paint()
}

export function useTheme(): Theme {
  return useSyncExternalStore(onPaint, chosenTheme)
}

/** The theme on the screen: the system's, where that was chosen. */
export function useIsDark(): boolean {
  return useSyncExternalStore(onPaint, () => document.documentElement.dataset['theme'] === 'dark')
}

function onPaint(listener: () => void): () => void {
  listeners.add(listener)
  return () => listeners.delete(listener)
}
