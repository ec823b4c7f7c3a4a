/** A short notice of an action, with a way to undo it. */
import { lazy, Suspense } from 'react'
import { create } from 'zustand'
import type { ShownToast } from './toast-list.tsx'

const ToastList = lazy(() => import('./toast-list.tsx'))

const useShown = create<readonly ShownToast[]>(() => [])

export function showToast(text: string, options: Omit<ShownToast, 'text'> = {}): void {
  useShown.setState((shown) => [...shown, { text, ...options }], true)
}

/** The list of toasts. Once in the page. */
export function Toasts() {
  const shown = useShown()
  if (shown.length === 0) return null
  return (
    <Suspense fallback={null}>
      <ToastList toasts={shown} />
    </Suspense>
  )
}
