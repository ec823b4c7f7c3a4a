import { useEffect, useRef } from 'react'
import { ownKeys } from '../lib/own-keys.ts'
import { type Shortcut, shortcutOf } from '../lib/shortcuts.ts'

/** Escape in an open dialog or menu belongs to it. */
function isCovered(): boolean {
  return document.querySelector('[role="dialog"], [role="alertdialog"], [role="menu"]') !== null
}

/** Keys that act everywhere. A handler that answers false leaves the key to the browser. */
export function useGlobalKeys(handle: (shortcut: Shortcut) => boolean): void {
  const latest = useRef(handle)
  useEffect(() => {
    latest.current = handle
  })
  useEffect(() => {
    const onKeyDown = (event: KeyboardEvent) => {
      if (event.defaultPrevented || event.isComposing || event.repeat) return
      const shortcut = shortcutOf(event, ownKeys())
      if (shortcut === undefined || isCovered()) return
      if (latest.current(shortcut)) event.preventDefault()
    }
    window.addEventListener('keydown', onKeyDown)
    return () => window.removeEventListener('keydown', onKeyDown)
  }, [])
}
