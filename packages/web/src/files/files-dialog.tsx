/** What is in the person's workspace: looked at, saved, added to. */
import { TitledDialog } from '../ui/titled-dialog.tsx'
import { Files } from './files.tsx'

export function FilesDialog(props: { open: boolean; onOpenChange: (open: boolean) => void }) {
  return (
    <TitledDialog {...props} title="Files" size="h-[min(38rem,calc(100dvh-2rem))] w-[38rem]">
      {/* What the agent wrote meanwhile is there: it looks anew each time. */}
      <Files />
    </TitledDialog>
  )
}
