import { StrictMode } from 'react'
import { createRoot } from 'react-dom/client'
import './styles/index.css'
import { App } from './app.tsx'
import { watchTheme } from './lib/theme.ts'

const root = document.getElementById('root')
if (root === null) throw new Error('index.html has no #root')
watchTheme()
preventStrayDrops()
createRoot(root).render(
  <StrictMode>
    <App />
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
