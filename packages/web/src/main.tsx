import { StrictMode } from 'react'
import { createRoot } from 'react-dom/client'
import './styles/index.css'
import { App } from './app/app.tsx'
import { watchTheme } from './lib/theme.ts'
import { Boundary } from './ui/boundary.tsx'
import { Button } from './ui/button.tsx'
import { LogoMark } from './ui/logo.tsx'

/** A page that was reloaded so recently is not helped by another reload. */
const JUST_RELOADED_MS = 30_000

/** In place of an empty window. */
function PageFailed() {
  return (
    <main className="flex h-full flex-col items-center justify-center gap-3 px-6 text-center">
      <LogoMark className="size-9" />
      <h1 className="mt-2 text-lg font-semibold">This page couldn’t be displayed</h1>
      <p role="alert" className="max-w-sm text-sm text-muted">
        Something failed to load. Your drafts are kept, and your work keeps running.
      </p>
      <Button className="mt-2" onClick={() => location.reload()}>
        Reload
      </Button>
    </main>
  )
}

const root = document.getElementById('root')
if (root === null) throw new Error('index.html has no #root')
watchTheme()
preventStrayDrops()
reloadForLostFiles()
createRoot(root).render(
  <StrictMode>
    <Boundary fallback={<PageFailed />}>
      <App />
    </Boundary>
  </StrictMode>,
)

/**
 * A browser opens what is dropped where no part of the page takes it, in place of the page. Text
 * still goes into fields.
 */
function preventStrayDrops(): void {
  for (const type of ['dragover', 'drop'] as const) {
    // On the way up, behind whatever takes drops.
    window.addEventListener(type, (event) => {
      if (event.defaultPrevented || takesText(event)) return
      event.preventDefault()
      if (event.dataTransfer !== null) event.dataTransfer.dropEffect = 'none'
    })
  }
}

function takesText({ target, dataTransfer }: DragEvent): boolean {
  if (dataTransfer?.types.includes('Files') === true) return false
  return target instanceof HTMLInputElement || target instanceof HTMLTextAreaElement
}

/**
 * Reloads the page when one of its files is missing: replaced by another version, or lost on the
 * way. Drafts are stored, and the service has the rest.
 */
function reloadForLostFiles(): void {
  window.addEventListener('vite:preloadError', (event) => {
    const [navigation] = performance.getEntriesByType('navigation') as PerformanceNavigationTiming[]
    if (navigation?.type === 'reload' && performance.now() < JUST_RELOADED_MS) return
    event.preventDefault()
    location.reload()
  })
}
