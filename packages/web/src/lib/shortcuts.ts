/** Keys that act everywhere. Pure matching, so that it can be tested without a browser. */

export type Shortcut =
  | 'new-chat'
  | 'toggle-sidebar'
  | 'settings'
  | 'palette'
  | 'copy-reply'
  | 'copy-code'
  | 'delete-chat'
  | 'toggle-workspace'
  | 'shortcuts'
  | 'focus-composer'
  | 'stop'
  | 'allow'
  | 'reject'
  | 'allow-all'
  | 'reject-all'
  | 'pending'

/** The action of each key, for people. `Mod` is Cmd on a Mac and Ctrl elsewhere. */
const WORDS: Record<Shortcut, { keys: string; does: string }> = {
  stop: { keys: 'Esc', does: 'Stop the agent' },
  allow: { keys: 'Ctrl+Alt+Enter', does: 'Show the first waiting call, then allow it' },
  reject: {
    keys: 'Ctrl+Alt+Backspace',
    does: 'Show the first waiting call, then deny it',
  },
  'allow-all': { keys: 'Ctrl+Alt+Shift+Enter', does: 'Allow all waiting calls once' },
  'reject-all': { keys: 'Ctrl+Alt+Shift+Backspace', does: 'Deny all waiting calls' },
  pending: { keys: 'Mod+Shift+L', does: 'Show approvals waiting for you' },
  'new-chat': { keys: 'Mod+Shift+O', does: 'New chat' },
  palette: { keys: 'Mod+K', does: 'Find a chat or an action' },
  'focus-composer': { keys: 'Shift+Esc', does: 'Focus the message box' },
  'copy-reply': { keys: 'Mod+Shift+C', does: 'Copy the last answer' },
  'copy-code': { keys: 'Mod+Shift+;', does: 'Copy the last code block' },
  'delete-chat': { keys: 'Mod+Shift+Backspace', does: 'Delete this chat (with undo)' },
  'toggle-sidebar': { keys: 'Mod+Shift+S', does: 'Toggle sidebar' },
  'toggle-workspace': { keys: 'Mod+Shift+E', does: 'Toggle workspace' },
  settings: { keys: 'Mod+.', does: 'Settings' },
  shortcuts: { keys: 'Mod+/', does: 'Keyboard shortcuts' },
}

/** Keys that a person has chosen in place of ours. */
export type OwnKeys = Partial<Record<Shortcut, string>>

/** Every key, those of the composer first. `shortcut`: it can be given other keys. */
export function shortcutWords(own: OwnKeys): { keys: string; does: string; shortcut?: Shortcut }[] {
  return [
    { keys: 'Enter', does: 'Send, also while the agent works' },
    { keys: 'Shift+Enter', does: 'New line' },
    { keys: '↑', does: 'Edit your last message (empty field)' },
    ...SHORTCUTS.map((shortcut) => ({
      keys: keysOf(shortcut, own),
      does: WORDS[shortcut].does,
      ...(FIXED.has(shortcut) ? {} : { shortcut }),
    })),
  ]
}

const SHORTCUTS = Object.keys(WORDS) as Shortcut[]
/** Escape is the way out of much else. */
const FIXED: ReadonlySet<Shortcut> = new Set(['stop', 'focus-composer'])

export const keysOf = (shortcut: Shortcut, own: OwnKeys): string => own[shortcut] ?? WORDS[shortcut].keys

/** The shortcut that uses these keys; undefined: they are free. */
export function doneBy(keys: string, own: OwnKeys): Shortcut | undefined {
  return SHORTCUTS.find((shortcut) => keysOf(shortcut, own) === keys)
}

export const doesWhat = (shortcut: Shortcut): string => WORDS[shortcut].does

/** The form of `WORDS`, if it may be a shortcut: with Ctrl or Cmd, or with Ctrl and Alt. */
export function keysOfPress(press: KeyPress): string | undefined {
  const { key, ctrlKey, altKey, shiftKey } = press
  if (['Control', 'Meta', 'Alt', 'AltGraph', 'Shift', 'Escape', 'Dead', 'Process'].includes(key)) return
  if (!(ctrlKey || press.metaKey) || (altKey && !ctrlKey)) return
  const before = altKey ? ['Ctrl', 'Alt'] : ['Mod']
  return [...before, ...(shiftKey ? ['Shift'] : []), key.length === 1 ? key.toUpperCase() : key].join('+')
}

interface KeyPress {
  key: string
  ctrlKey: boolean
  metaKey: boolean
  altKey: boolean
  shiftKey: boolean
}

/**
 * The shortcut of a key, or undefined. Ctrl and Cmd are the same, except with Alt, where Ctrl is
 * Ctrl everywhere. `own`: chosen keys, which take precedence.
 */
export function shortcutOf(press: KeyPress, own: OwnKeys): Shortcut | undefined {
  const keys = keysOfPress(press)
  const chosen = keys === undefined ? undefined : SHORTCUTS.find((shortcut) => own[shortcut] === keys)
  if (chosen !== undefined) return chosen
  const ours = usualShortcut(press)
  return ours === undefined || own[ours] !== undefined ? undefined : ours
}

function usualShortcut(press: KeyPress): Shortcut | undefined {
  const mod = press.ctrlKey || press.metaKey
  if (press.key === 'Escape' && !mod && !press.altKey) return press.shiftKey ? 'focus-composer' : 'stop'
  if (press.ctrlKey && press.altKey) {
    if (press.key === 'Enter') return press.shiftKey ? 'allow-all' : 'allow'
    if (press.key === 'Backspace') return press.shiftKey ? 'reject-all' : 'reject'
    return undefined
  }
  if (!mod || press.altKey) return undefined
  const key = press.key.toLowerCase()
  // On some keyboards it is on a key that needs Shift.
  if (key === '/') return 'shortcuts'
  return (press.shiftKey ? WITH_SHIFT : WITHOUT_SHIFT)[key]
}

const WITH_SHIFT: Readonly<Record<string, Shortcut | undefined>> = {
  l: 'pending',
  o: 'new-chat',
  s: 'toggle-sidebar',
  e: 'toggle-workspace',
  c: 'copy-reply',
  // The shifted character differs between keyboards.
  ';': 'copy-code',
  ':': 'copy-code',
  backspace: 'delete-chat',
}
const WITHOUT_SHIFT: Readonly<Record<string, Shortcut | undefined>> = { k: 'palette', '.': 'settings' }
