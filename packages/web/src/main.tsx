import { StrictMode } from 'react'
import { createRoot } from 'react-dom/client'
import { App } from './app.tsx'
import { preventStrayDrops } from './lib/stray-drops.ts'
import { watchTheme } from './lib/theme.ts'
import './styles/index.css'

const root = document.getElementById('root')
if (root === null) throw new Error('index.html has no #root')
watchTheme()
preventStrayDrops()
createRoot(root).render(
  <StrictMode>
    <App />
  </StrictMode>,
)
