import { useEffect, useEffectEvent, useState } from 'react'
import { useStore } from 'zustand'
import { Resource } from './resource.ts'

interface Options<T> {
  /** The answer for the key before is shown until the next arrives. */
  keep?: boolean
  /** A person who types is not asked about every letter. */
  pauseMs?: number
  /** Asks again so long after each answer, while the page is visible. */
  everyMs?: number | ((data: T | null) => number | undefined)
}

/**
 * Server state for `key`, which names everything that makes a difference; null: nothing is asked.
 * The request ends with the view. `ask` may be a new function in each render.
 */
export function useResource<T>(
  key: string | null,
  ask: (signal: AbortSignal) => Promise<T>,
  { keep = false, pauseMs = 0, everyMs }: Options<T> = {},
) {
  const [resource] = useState(() => new Resource<T>())
  const { data, key: shown, unread, refused, busy } = useStore(resource.store)
  const latest = useEffectEvent(ask)
  const next = useEffectEvent((now: T | null) => (typeof everyMs === 'function' ? everyMs(now) : everyMs))
  useEffect(() => {
    if (key === null) return
    resource.start(key, (signal) => latest(signal), { pauseMs, everyMs: (now) => next(now) })
    return () => resource.stop()
  }, [resource, key, pauseMs])
  return {
    data: key !== null && (keep || shown === key) ? data : null,
    /** The failure of the last change, else of the last question. */
    problem: refused ?? unread,
    busy,
    reload: () => resource.load(),
    change: (work: () => Promise<T | void>) => resource.change(work),
    show: (next: T) => resource.show(next),
    update: (to: (now: T) => T) => resource.update(to),
  }
}
