/** Opened and closed parts of a conversation, also of rows that are not rendered now. */
import { createContext, useContext, useState } from 'react'

const Context = createContext<Map<string, boolean>>(new Map())
export const RememberedProvider = Context.Provider

/** `useState` that is stored under this name; null until it is set. */
export function useRemembered(name: string): [boolean | null, (value: boolean) => void] {
  const remembered = useContext(Context)
  const [value, setValue] = useState(remembered.get(name) ?? null)
  const set = (next: boolean) => {
    remembered.set(name, next)
    setValue(next)
  }
  return [value, set]
}
