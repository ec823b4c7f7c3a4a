/** Something that is looked for while a person types, and comes in pages. */
import { messageOf } from '@sandlot/shared/base/errors'
import { useResource } from './use-resource.ts'

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
  | ({ state: 'found' } & Page<Item>)
  | { state: 'failed'; problem: string }

export interface Pages<Item> {
  found: Found<Item>
  /** Look further back. Resolves with the problem, if there was one; what was found stays. */
  more: () => Promise<string | null>
  /** Leave out what this says of. */
  drop: (isRemoved: (item: Item) => boolean) => void
}

/**
 * `wanted`: all that makes a difference, as one text; empty: nothing is looked for. What was found
 * stays in sight while the next is looked for.
 */
export function usePages<Item>(
  wanted: string,
  fetchPage: (before?: number, signal?: AbortSignal) => Promise<Page<Item>>,
): Pages<Item> {
  const { data, problem, update } = useResource(
    wanted === '' ? null : wanted,
    async (signal) => ({ wanted, ...(await fetchPage(undefined, signal)) }),
    { keep: true, pauseMs: PAUSE_MS },
  )
  const more = async (): Promise<string | null> => {
    if (data?.wanted !== wanted || data.next === null) return null
    try {
      const page = await fetchPage(data.next)
      // Unless a newer search has finished.
      update((now) =>
        now.wanted === data.wanted && now.next === data.next
          ? { ...now, items: [...now.items, ...page.items], next: page.next }
          : now,
      )
      return null
    } catch (error) {
      return messageOf(error)
    }
  }
  const drop = (isRemoved: (item: Item) => boolean) =>
    update((now) => ({ ...now, items: now.items.filter((item) => !isRemoved(item)) }))
  return { found: foundIn(wanted, data, problem), more, drop }
}

function foundIn<Item>(wanted: string, data: Page<Item> | null, problem: string | null): Found<Item> {
  if (wanted === '') return { state: 'not asked' }
  if (problem !== null) return { state: 'failed', problem }
  return data === null ? { state: 'looking' } : { state: 'found', ...data }
}
