const APPLE = /Mac|iPhone|iPad/.test(navigator.platform)
const NAMES: Record<string, string> = APPLE
  ? { Mod: '⌘', Ctrl: '⌃', Alt: '⌥', Shift: '⇧', Enter: '↩', Backspace: '⌫' }
  : { Mod: 'Ctrl', Enter: '↵', Backspace: '⌫' }

/** `Ctrl+Alt+Enter`; `Mod` is Cmd on a Mac and Ctrl elsewhere. Not read aloud: the button has its own name. */
export function Kbd(props: { keys: string }) {
  return (
    <kbd className="hidden font-sans text-2xs font-normal sm:inline" aria-hidden>
      {props.keys
        .split('+')
        .map((key) => NAMES[key] ?? key)
        .join(APPLE ? '' : ' ')}
    </kbd>
  )
}
