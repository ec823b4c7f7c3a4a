/** Bring one entry of the conversation into view: a message or a call that a search has found. */
import { create } from 'zustand'

interface Wanted {
  /** A new object each time, so that the same place can be asked for again. */
  readonly entry: { readonly id: string } | null
}

const useWantedStore = create<Wanted>(() => ({ entry: null }))

/**
 * `id`: of the message, call, note or comment, or of the prompt for its end. Waits until a
 * conversation that has it is on the screen.
 */
export function scrollToEntry(id: string): void {
  useWantedStore.setState({ entry: { id } })
}

export function useWantedEntry(): Wanted['entry'] {
  return useWantedStore((state) => state.entry)
}
