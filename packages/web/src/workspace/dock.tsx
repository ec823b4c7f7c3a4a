/**
 * The workspace next to the chat: docked where there is room, over the page where there is none.
 */
import { Tabs } from '@base-ui/react/tabs'
import { Box, FileDiff, FolderOpen, Globe, SquareTerminal, X } from 'lucide-react'
import { lazy, Suspense, useRef, useState } from 'react'
import { browserStorage } from '../lib/storage.ts'
import { useIsWider } from '../lib/wide.ts'
import { IconButton } from '../ui/button.tsx'
import { Spinner } from '../ui/spinner.tsx'
import { type PanelId, useWorkspace } from '../state/use-workspace.ts'
import { Dialog } from '../ui/on-demand.tsx'

/** In the order of their tabs. Each is loaded when it is opened first. */
export const PANELS = [
  {
    id: 'files' as PanelId,
    label: 'Files',
    icon: FolderOpen,
    panel: lazy(() => import('./files/files-panel.tsx')),
  },
  {
    id: 'changes' as PanelId,
    label: 'Changes',
    icon: FileDiff,
    panel: lazy(() => import('./changes-panel.tsx')),
  },
  {
    id: 'app' as PanelId,
    label: 'App',
    icon: Globe,
    panel: lazy(() => import('./app-panel.tsx')),
  },
  {
    id: 'terminal' as PanelId,
    label: 'Terminal',
    icon: SquareTerminal,
    panel: lazy(() => import('./terminal-panel.tsx')),
  },
  {
    id: 'sandbox' as PanelId,
    label: 'Sandbox',
    icon: Box,
    panel: lazy(() => import('./sandbox-panel.tsx')),
  },
]

export default function Dock() {
  const { panel, close } = useWorkspace()
  const docked = useIsWider()
  if (docked) return panel === null ? null : <Docked />
  return (
    <Dialog.Root open={panel !== null} onOpenChange={(open) => !open && close()}>
      <Dialog.Portal>
        <Dialog.Backdrop className="backdrop fixed inset-0 z-30 bg-black/40" />
        <Dialog.Popup className="drawer-right fixed inset-y-0 right-0 z-40 flex w-full max-w-[42rem] flex-col border-l border-line bg-canvas shadow-3 outline-none">
          <Dialog.Title className="sr-only">Workspace</Dialog.Title>
          <Panels />
        </Dialog.Popup>
      </Dialog.Portal>
    </Dialog.Root>
  )
}

const WIDTH_KEY = 'sandlot.dock.width'
/** Pixels. The chat keeps the rest. */
const LEAST = 320
const USUAL = 480
const CHAT_KEEPS = 420
/** Pixels of one press of an arrow key. */
const STEP = 32

function Docked() {
  const [wanted, setWanted] = useState(() => Number(browserStorage('local').get(WIDTH_KEY)) || USUAL)
  const aside = useRef<HTMLElement>(null)
  const most = () => Math.max(LEAST, (aside.current?.parentElement?.clientWidth ?? 1280) - CHAT_KEEPS)
  const resize = (to: number) => {
    const width = Math.round(Math.min(Math.max(to, LEAST), most()))
    setWanted(width)
    browserStorage('local').set(WIDTH_KEY, String(width))
  }
  return (
    <aside
      ref={aside}
      aria-label="Workspace"
      data-testid="dock"
      style={{ width: wanted }}
      className="relative flex max-w-[60%] min-w-80 shrink-0 flex-col border-l border-line bg-canvas"
    >
      <div
        role="separator"
        aria-orientation="vertical"
        aria-label="Width of the workspace"
        aria-valuenow={wanted}
        aria-valuemin={LEAST}
        tabIndex={0}
        onKeyDown={(event) => {
          if (event.key === 'ArrowLeft') resize(wanted + STEP)
          else if (event.key === 'ArrowRight') resize(wanted - STEP)
          else return
          event.preventDefault()
        }}
        onPointerDown={(event) => {
          event.preventDefault()
          event.currentTarget.setPointerCapture(event.pointerId)
        }}
        onPointerMove={(event) => {
          if (!event.currentTarget.hasPointerCapture(event.pointerId)) return
          resize((aside.current?.getBoundingClientRect().right ?? 0) - event.clientX)
        }}
        onDoubleClick={() => resize(USUAL)}
        className="absolute inset-y-0 -left-1 z-10 w-2 cursor-col-resize touch-none transition-colors duration-150 hover:bg-accent-line active:bg-accent-line"
      />
      <Panels />
    </aside>
  )
}

function Panels() {
  const { panel, open, close } = useWorkspace()
  const shown = PANELS.find(({ id }) => id === panel) ?? PANELS[0]
  if (shown === undefined) return null
  const Panel = shown.panel
  return (
    <Tabs.Root
      value={shown.id}
      onValueChange={(id: PanelId) => open(id)}
      className="flex min-h-0 flex-1 flex-col"
    >
      <div className="flex h-13 shrink-0 items-center gap-1 border-b border-line pr-2.5 pl-2.5">
        <Tabs.List
          aria-label="Workspace"
          className="flex min-w-0 flex-1 items-center gap-0.5 overflow-x-auto"
        >
          {PANELS.map(({ id, label, icon: Icon }) => (
            <Tabs.Tab
              key={id}
              value={id}
              className="inline-flex h-8 shrink-0 items-center gap-1.5 rounded-lg px-2 text-sm text-muted max-sm:flex-1 max-sm:flex-col max-sm:justify-center max-sm:gap-0.5 max-sm:px-0.5 max-sm:text-2xs hover:bg-hover data-active:bg-active data-active:font-medium data-active:text-ink focus-visible:-outline-offset-2 pointer-coarse:h-11"
            >
              <Icon className="size-4" aria-hidden />
              {label}
            </Tabs.Tab>
          ))}
        </Tabs.List>
        <IconButton label="Close the workspace" onClick={close} className="max-md:size-11">
          <X aria-hidden />
        </IconButton>
      </div>
      <Tabs.Panel
        value={shown.id}
        // Its content has its own focus.
        tabIndex={-1}
        className="flex min-h-0 flex-1 flex-col outline-none"
      >
        <Suspense
          fallback={
            <p role="status" className="flex items-center gap-2 px-5 py-4 text-sm text-muted">
              <Spinner /> Opening {shown.label.toLowerCase()}…
            </p>
          }
        >
          <Panel />
        </Suspense>
      </Tabs.Panel>
    </Tabs.Root>
  )
}
