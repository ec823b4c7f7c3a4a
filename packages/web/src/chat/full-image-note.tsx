/** That sandboxes will have more tools soon, or could not get them. */
import type { Me } from '@sandlot/shared/api'
import { PackagePlus } from 'lucide-react'
import { useEffect, useState } from 'react'
import { fetchMe } from '../net/http.ts'
import { useChat } from './chat-context.ts'

/** It takes minutes. */
const ASK_AGAIN_MS = 15_000

const WORDS = {
  building:
    'More tools for sandboxes (numpy, pandas, matplotlib, ffmpeg and others) are being installed. A sandbox has them from its next start.',
  failed:
    'More tools for sandboxes (numpy, pandas, matplotlib, ffmpeg and others) could not be installed. What there was still works.',
}

export function FullImageNote() {
  const state = useFullImage(useChat().me)
  if (state === undefined) return null
  return (
    <p
      role="status"
      data-testid="full-image"
      className="flex gap-3 border-t border-line pt-5 text-sm text-muted"
    >
      <PackagePlus className="mt-0.5 size-4 shrink-0" aria-hidden />
      <span>
        {WORDS[state]}
        {state === 'failed' && (
          <>
            {' '}
            The reason is in <code className="text-ink">log/full-image.log</code> of Sandlot’s data folder.
          </>
        )}
      </span>
    </p>
  )
}

function useFullImage(me: Me): 'building' | 'failed' | undefined {
  const [state, setState] = useState(me.fullImage?.state)
  useEffect(() => {
    if (state !== 'building') return
    const asking = setInterval(() => {
      // Away just now: asked again with the next tick.
      fetchMe().then(
        (now) => setState(now.fullImage?.state),
        () => undefined,
      )
    }, ASK_AGAIN_MS)
    return () => clearInterval(asking)
  }, [state])
  return state
}
