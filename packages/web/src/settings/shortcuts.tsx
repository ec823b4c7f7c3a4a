import { SHORTCUT_WORDS } from '../lib/shortcuts.ts'
import { keyNames } from '../ui/kbd.tsx'
import { TitledDialog } from '../ui/titled-dialog.tsx'

/** Every key that acts everywhere, and those of the composer. */
export function ShortcutList() {
  return (
    <dl className="grid grid-cols-[1fr_auto] gap-x-6 gap-y-2 text-sm">
      {SHORTCUT_WORDS.map(({ keys, does }) => (
        <div key={keys} className="contents">
          <dt className="text-muted">{does}</dt>
          <dd className="flex items-start justify-end gap-1">
            {keyNames(keys).map((name) => (
              <kbd
                key={name}
                className="min-w-6 rounded border border-line-strong bg-sunken px-1.5 text-center font-sans text-xs leading-5"
              >
                {name}
              </kbd>
            ))}
          </dd>
        </div>
      ))}
    </dl>
  )
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
