/** Something that is looked for while a person types, and comes in pages. */
import { messageOf } from '@sandlot/shared/base/errors'
import { useEffect, useEffectEvent, useState } from 'react'

/** A person who types is not asked about every letter, in milliseconds. */
const PAUSE_MS = 150

interface Page<Item> {
  items: readonly Item[]
  /** The start of the next page; null: there is none. */
  next: number | null
}

type Found<Item> =
  | { state: 'not asked' }
  | { state: 'looking' }
  /** `wanted`: what was looked for. */
  | ({ state: 'found'; wanted: string } & Page<Item>)
  | { state: 'failed'; problem: string }

export interface Pages<Item> {
  found: Found<Item>
  /** Look further back. Resolves with the problem, if there was one; what was found stays. */
  more: () => Promise<string | null>
  /** Leave out what this says of. */
  drop: (isRemoved: (item: Item) => boolean) => void
}

const NOT_ASKED = { state: 'not asked' } as const

/**
 * `wanted`: all that makes a difference, as one text; empty: nothing is looked for. What was found
 * stays in sight while the next is looked for.
 */
export function usePages<Item>(
  wanted: string,
  fetchPage: (before?: number) => Promise<Page<Item>>,
): Pages<Item> {
  const [found, setFound] = useState<Found<Item>>(NOT_ASKED)
  const ask = useEffectEvent(fetchPage)
  useEffect(() => {
    if (wanted === '') return setFound(NOT_ASKED)
    setFound((before) => (before.state === 'found' ? before : { state: 'looking' }))
    let left = false
    const timer = setTimeout(() => {
      ask().then(
        (page) => !left && setFound({ state: 'found', wanted, ...page }),
        (error: unknown) => !left && setFound({ state: 'failed', problem: messageOf(error) }),
      )
    }, PAUSE_MS)
    return () => {
      left = true
      clearTimeout(timer)
    }
  }, [wanted])
  const more = async (): Promise<string | null> => {
    if (found.state !== 'found' || found.next === null) return null
    try {
      const page = await fetchPage(found.next)
      // Unless a newer search has finished.
      setFound((now) =>
        now.state === 'found' && now.wanted === found.wanted && now.next === found.next
          ? { ...now, items: [...now.items, ...page.items], next: page.next }
          : now,
      )
      return null
    } catch (error) {
      return messageOf(error)
    }
  }
  const drop = (isRemoved: (item: Item) => boolean) =>
    setFound((now) =>
      now.state === 'found' ? { ...now, items: now.items.filter((item) => !isRemoved(item)) } : now,
    )
  return { found: wanted === '' ? NOT_ASKED : found, more, drop }
}
