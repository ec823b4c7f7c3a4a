/** The keys that a person has chosen in this browser, in place of ours. */
import { useSyncExternalStore } from 'react'
import type { OwnKeys, Shortcut } from './shortcuts.ts'
import { browserStorage } from './storage.ts'

const KEY = 'sandlot.keys'

const listeners = new Set<() => void>()
let read: { text: string | null; keys: OwnKeys } = { text: null, keys: {} }

/** The same object while nothing has changed, in whichever tab. */
export function ownKeys(): OwnKeys {
  const text = browserStorage('local').get(KEY)
  if (text !== read.text) read = { text, keys: parsed(text) }
  return read.keys
}

function parsed(text: string | null): OwnKeys {
  try {
    const value: unknown = JSON.parse(text ?? '{}')
    if (typeof value !== 'object' || value === null) return {}
    return Object.fromEntries(Object.entries(value).filter(([, keys]) => typeof keys === 'string'))
  } catch {
    return {} // Nothing of ours wrote it.
  }
}

export function useOwnKeys(): OwnKeys {
  return useSyncExternalStore((listener) => {
    listeners.add(listener)
    addEventListener('storage', listener)
    return () => {
      listeners.delete(listener)
      removeEventListener('storage', listener)
    }
  }, ownKeys)
}

/** `keys` undefined: ours again. */
export function chooseKeys(shortcut: Shortcut, keys: string | undefined): void {
  const { [shortcut]: _, ...others } = ownKeys()
  browserStorage('local').set(
    KEY,
    JSON.stringify(keys === undefined ? others : { ...others, [shortcut]: keys }),
  )
  for (const listener of listeners) listener()
}
