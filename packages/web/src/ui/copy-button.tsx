import { Check, Copy, X } from 'lucide-react'
import { useCallback, useEffect, useState } from 'react'
import { cn } from '../lib/cn.ts'

const WORDS = { idle: 'Copy', copied: 'Copied', refused: 'Not allowed' }
const ICONS = { idle: Copy, copied: Check, refused: X }

/** `what` completes the accessible name: “Copy code”. `quiet`: the icon alone. */
export function CopyButton(props: { text: string; what: string; quiet?: boolean; className?: string }) {
  const [state, copy] = useCopied()
  const Icon = ICONS[state]
  return (
    <button
      type="button"
      onClick={() => copy(props.text)}
      aria-label={state === 'idle' ? `Copy ${props.what}` : WORDS[state]}
      title={`Copy ${props.what}`}
      className={cn(
        'inline-flex h-7 items-center justify-center gap-1.5 rounded-md px-1.5 text-xs text-faint hover:bg-hover hover:text-ink pointer-coarse:h-11 pointer-coarse:min-w-11',
        props.className,
      )}
    >
      <Icon className="size-3.5" aria-hidden />
      {props.quiet !== true && <span>{WORDS[state]}</span>}
    </button>
  )
}

type CopyState = 'idle' | 'copied' | 'refused'

/**
 * Copy to the clipboard, and say so for a moment. Browsers refuse it on pages that are not secure.
 */
function useCopied(): [CopyState, (text: string) => void] {
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

/** Throws where the browser refuses it. */
export async function writeClipboard(text: string): Promise<void> {
  if (!('clipboard' in navigator)) throw new Error('no clipboard on an insecure page')
  await navigator.clipboard.writeText(text)
}
