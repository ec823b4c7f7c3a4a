import { RotateCcw } from 'lucide-react'
import { type KeyboardEvent, useState } from 'react'
import { cn } from '../lib/cn.ts'
import { chooseKeys, useOwnKeys } from '../lib/own-keys.ts'
import { doesWhat, doneBy, keysOfPress, type Shortcut, shortcutWords } from '../lib/shortcuts.ts'
import { IconButton } from '../ui/button.tsx'
import { keyNames } from '../ui/kbd.tsx'
import { TitledDialog } from '../ui/titled-dialog.tsx'

/** Every key that acts everywhere, and those of the composer. */
function ShortcutList() {
  const own = useOwnKeys()
  return (
    <dl className="grid grid-cols-[1fr_auto] gap-x-6 gap-y-2 text-sm">
      {shortcutWords(own).map(({ keys, does }) => (
        <div key={does} className="contents">
          <dt className="text-muted">{does}</dt>
          <dd>
            <Keys keys={keys} />
          </dd>
        </div>
      ))}
    </dl>
  )
}

function Keys({ keys }: { keys: string }) {
  return (
    <span className="flex items-start justify-end gap-1">
      {keyNames(keys).map((name) => (
        <kbd
          key={name}
          className="min-w-6 rounded border border-line-strong bg-sunken px-1.5 text-center font-sans text-xs leading-5"
        >
          {name}
        </kbd>
      ))}
    </span>
  )
}

/** The same list, in which keys are chosen. */
export function ShortcutChoices() {
  const own = useOwnKeys()
  const { asked, ask, problem, onKeyDown } = useKeyChoice()
  return (
    <>
      <p className="text-sm text-muted">Click a shortcut to change it. Saved in this browser.</p>
      <p role="status" className="text-sm text-failed empty:hidden">
        {problem}
      </p>
      <ul className="flex flex-col text-sm">
        {shortcutWords(own).map(({ keys, does, shortcut }) => (
          <li key={does} className="flex min-h-8 items-center gap-2">
            <span className="min-w-0 flex-1 text-muted">{does}</span>
            {shortcut !== undefined && own[shortcut] !== undefined && (
              <IconButton
                label={`Reset: ${does}`}
                onClick={() => chooseKeys(shortcut, undefined)}
                className="size-7"
              >
                <RotateCcw aria-hidden />
              </IconButton>
            )}
            {shortcut === undefined ? (
              <Keys keys={keys} />
            ) : (
              <button
                type="button"
                aria-pressed={asked === shortcut}
                onClick={() => ask(asked === shortcut ? null : shortcut)}
                onKeyDown={onKeyDown}
                onBlur={() => asked === shortcut && ask(null)}
                className={cn(
                  '-mr-1 rounded-md p-1 hover:bg-hover pointer-coarse:min-h-11 pointer-coarse:min-w-11',
                  asked === shortcut && 'bg-accent-wash text-xs font-medium text-accent',
                )}
              >
                <span className="sr-only">{does}: </span>
                {asked === shortcut ? 'Press the keys…' : <Keys keys={keys} />}
              </button>
            )}
          </li>
        ))}
      </ul>
    </>
  )
}

/** `asked`: takes the next keys that are pressed. */
function useKeyChoice() {
  const own = useOwnKeys()
  const [asked, setAsked] = useState<Shortcut | null>(null)
  const [problem, setProblem] = useState('')
  const ask = (shortcut: Shortcut | null) => {
    setAsked(shortcut)
    setProblem('')
  }
  const onKeyDown = (event: KeyboardEvent) => {
    if (asked === null || event.key === 'Tab') return
    // The default action of the press is prevented.
    event.preventDefault()
    event.stopPropagation()
    event.nativeEvent.stopImmediatePropagation()
    if (event.key === 'Escape') return ask(null)
    const keys = keysOfPress(event)
    if (keys === undefined) return
    const other = doneBy(keys, own)
    if (other !== undefined && other !== asked)
      return setProblem(`${keyNames(keys).join(' ')} is already used: ${doesWhat(other)}.`)
    chooseKeys(asked, keys)
    ask(null)
  }
  return { asked, ask, problem, onKeyDown }
}

export function ShortcutsDialog(props: { open: boolean; onOpenChange: (open: boolean) => void }) {
  return (
    <TitledDialog {...props} title="Keyboard" size="max-h-[calc(100dvh-2rem)] w-[30rem]">
      {/* Focusable, so that the keyboard can scroll it. */}
      <div className="overflow-y-auto p-5" tabIndex={0} role="group" aria-label="Keys">
        <ShortcutList />
      </div>
    </TitledDialog>
  )
}
