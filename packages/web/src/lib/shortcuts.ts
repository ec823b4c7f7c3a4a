/** Keys that act everywhere. Pure matching, so that it can be tested without a browser. */

export type Shortcut =
  | 'new-chat'
  | 'toggle-sidebar'
  | 'settings'
  | 'search'
  | 'shortcuts'
  | 'focus-composer'
  | 'stop'
  | 'allow'
  | 'reject'
  | 'allow-all'
  | 'reject-all'

/** Every key, for people. `Mod` is Cmd on a Mac and Ctrl elsewhere. */
export const SHORTCUT_WORDS: readonly { keys: string; does: string }[] = [
  { keys: 'Enter', does: 'Send; while the agent works, add to it' },
  { keys: 'Shift+Enter', does: 'Begin a new line' },
  { keys: '↑', does: 'Bring back what you said last, in an empty field' },
  { keys: 'Esc', does: 'Stop the agent' },
  { keys: 'Ctrl+Alt+Enter', does: 'Bring the first call that waits into view, and allow it there' },
  { keys: 'Ctrl+Alt+Backspace', does: 'Bring the first call that waits into view, and deny it there' },
  { keys: 'Ctrl+Alt+Shift+Enter', does: 'Allow all that wait, once' },
  { keys: 'Ctrl+Alt+Shift+Backspace', does: 'Deny all that wait' },
  { keys: 'Mod+Shift+O', does: 'New chat' },
  { keys: 'Mod+K', does: 'Find a chat' },
  { keys: 'Shift+Esc', does: 'Go to the field for messages' },
  { keys: 'Mod+Shift+S', does: 'Show or hide the list of chats' },
  { keys: 'Mod+.', does: 'Settings' },
  { keys: 'Mod+/', does: 'These keys' },
]

interface KeyPress {
  key: string
  ctrlKey: boolean
  metaKey: boolean
  altKey: boolean
  shiftKey: boolean
}

/**
 * What a key means, or undefined. Ctrl and Cmd are the same, except with Alt, where Ctrl is Ctrl
 * everywhere.
 */
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
  if (!press.shiftKey && press.key.toLowerCase() === 'k') return 'search'
  // On some keyboards it is on a key that needs Shift.
  if (press.key === '/') return 'shortcuts'
  return undefined
}
