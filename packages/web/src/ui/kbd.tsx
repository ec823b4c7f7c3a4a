const APPLE = /Mac|iPhone|iPad/.test(navigator.platform)
const NAMES: Record<string, string> = APPLE
  ? { Mod: '⌘', Ctrl: '⌃', Alt: '⌥', Shift: '⇧', Enter: '↩', Backspace: '⌫' }
  : { Mod: 'Ctrl', Enter: '↵', Backspace: '⌫' }

/** `Mod+Shift+O` → what stands on the keys. `Mod` is Cmd on a Mac and Ctrl elsewhere. */
export function keyNames(keys: string): string[] {
  return keys.split('+').map((key) => NAMES[key] ?? key)
}

/**
 * `Ctrl+Alt+Enter`; `Mod` is Cmd on a Mac and Ctrl elsewhere. Not read aloud: the button has its
 * own name.
 */
export function Kbd(props: { keys: string }) {
  return (
    <kbd className="hidden font-sans text-2xs font-normal sm:inline" aria-hidden>
      {keyNames(props.keys).join(APPLE ? '' : ' ')}
    </kbd>
  )
}
