import { useCallback, useEffect, useState } from 'react'

export type CopyState = 'idle' | 'copied' | 'refused'

/** Copy to the clipboard, and say so for a moment. Browsers refuse it on pages that are not secure. */
export function useCopied(): [CopyState, (text: string) => void] {
  const [state, setState] = useState<CopyState>('idle')
  useEffect(() => {
    if (state === 'idle') return
    const timer = setTimeout(() => setState('idle'), 1600)
    return () => clearTimeout(timer)
  }, [state])
  const copy = useCallback((text: string) => {
    writeClipboard(text).then(
      () => setState('copied'),
      () => setState('refused'),
    )
  }, [])
  return [state, copy]
}

async function writeClipboard(text: string): Promise<void> {
  if (!('clipboard' in navigator)) throw new Error('no clipboard on an insecure page')
  await navigator.clipboard.writeText(text)
}
