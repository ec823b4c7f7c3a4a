import { TitledDialog } from '../ui/titled-dialog.tsx'
import { ShortcutList } from './shortcut-list.tsx'

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
