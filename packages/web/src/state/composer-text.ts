/** Text that another part of the page puts into the field for messages. */
import { useEffect } from 'react'
import { create } from 'zustand'

const useHandedText = create<{ text: string | null }>(() => ({ text: null }))

export function handToComposer(text: string): void {
  useHandedText.setState({ text })
}

/** `take` gets each text once; it may be another function each time. */
export function useTakeHanded(take: (text: string) => void): void {
  const { text } = useHandedText()
  useEffect(() => {
    if (text === null) return
    useHandedText.setState({ text: null })
    take(text)
    // `take` is a new function in each render, and does the same.
    // oxlint-disable-next-line react-hooks/exhaustive-deps
  }, [text])
}
