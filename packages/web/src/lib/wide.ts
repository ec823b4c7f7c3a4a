import { useSyncExternalStore } from 'react'

const WIDE = '(min-width: 768px)'
const WIDER = '(min-width: 1100px)'

/** True if there is room for a list next to a page. */
export function useIsWide(): boolean {
  return useMediaQuery(WIDE)
}

/** True if there is room for a panel at the other side of the page too. */
export function useIsWider(): boolean {
  return useMediaQuery(WIDER)
}

function useMediaQuery(words: string): boolean {
  return useSyncExternalStore(
    (listener) => {
      const query = matchMedia(words)
      query.addEventListener('change', listener)
      return () => query.removeEventListener('change', listener)
    },
    () => matchMedia(words).matches,
  )
}
