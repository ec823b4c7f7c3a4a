/** State of the dock next to the chat. Stored in this browser, except the file. */
import { create } from 'zustand'
import { browserStorage } from '../lib/storage.ts'

const PANEL_IDS = ['files', 'changes', 'terminal', 'app', 'sandbox'] as const
export type PanelId = (typeof PANEL_IDS)[number]

interface WorkspaceState {
  /** The panel on the screen. Null: the dock is closed. */
  panel: PanelId | null
  /** The file that the files panel shows, relative to the workspace. Null: its tree. */
  file: string | null
  open: (panel: PanelId) => void
  /** Shows a file of the person's workspace in the files panel. */
  openFile: (path: string) => void
  /** Back from a file to the tree. */
  closeFile: () => void
  /** Opens the panel that was open last, or closes the dock. */
  toggle: () => void
  close: () => void
}

const OPEN_KEY = 'sandlot.dock'
const LAST_KEY = 'sandlot.dock.last'

const panelOf = (text: string | null): PanelId | null => PANEL_IDS.find((id) => id === text) ?? null

export const useWorkspace = create<WorkspaceState>()((set, get) => {
  const storage = browserStorage('local')
  const show = (panel: PanelId | null, file: string | null): void => {
    if (panel === null) storage.remove(OPEN_KEY)
    else {
      storage.set(OPEN_KEY, panel)
      storage.set(LAST_KEY, panel)
    }
    set({ panel, file })
  }
  return {
    panel: panelOf(storage.get(OPEN_KEY)),
    file: null,
    open: (panel) => show(panel, null),
    openFile: (path) => show('files', path),
    closeFile: () => set({ file: null }),
    toggle: () => show(get().panel === null ? (panelOf(storage.get(LAST_KEY)) ?? 'files') : null, get().file),
    close: () => show(null, get().file),
  }
})
