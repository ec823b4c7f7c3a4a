/** Keys that act everywhere. Pure matching, so that it can be tested without a browser. */

export type Shortcut =
  | 'new-chat'
  | 'toggle-sidebar'
  | 'settings'
  | 'focus-composer'
  | 'stop'
  | 'allow'
  | 'reject'
  | 'allow-all'
  | 'reject-all'

export interface KeyPress {
  key: string
  ctrlKey: boolean
  metaKey: boolean
  altKey: boolean
  shiftKey: boolean
}

/** What a key means, or undefined. Ctrl and Cmd are the same, except with Alt, where Ctrl is Ctrl everywhere. */
export function shortcutOf(press: KeyPress): Shortcut | undefined {
  const mod = press.ctrlKey || press.metaKey
  if (press.key === 'Escape' && !mod && !press.altKey) return press.shiftKey ? 'focus-composer' : 'stop'
  if (press.ctrlKey && press.altKey) {
    if (press.key === 'Enter') return press.shiftKey ? 'allow-all' : 'allow'
    if (press.key === 'Backspace') return press.shiftKey ? 'reject-all' : 'reject'
    return undefined
  }
  if (!mod || press.altKey) return undefined
  if (press.shiftKey && press.key.toLowerCase() === 'o') return 'new-chat'
  if (press.shiftKey && press.key.toLowerCase() === 's') return 'toggle-sidebar'
  if (!press.shiftKey && press.key === '.') return 'settings'
  return undefined
}
