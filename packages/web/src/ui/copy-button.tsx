import { Check, Copy, X } from 'lucide-react'
import { cn } from '../lib/cn.ts'
import { useCopied } from '../lib/use-copied.ts'

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
