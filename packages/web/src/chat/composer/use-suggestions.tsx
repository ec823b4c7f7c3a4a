/** Suggestions for the word at the caret, as a list above the field. */
import {
  type KeyboardEvent,
  type ReactNode,
  type RefObject,
  useId,
  useLayoutEffect,
  useRef,
  useState,
} from 'react'
import { cn } from '../../lib/cn.ts'

export interface Suggestions {
  /** Above the field while something is begun. */
  list: ReactNode
  /** For the field. */
  field: Record<`aria-${string}`, string | boolean | undefined>
  /** True: the key was for the list. */
  onKeyDown: (event: KeyboardEvent<HTMLTextAreaElement>) => boolean
}

interface SuggestionParts<T> {
  field: RefObject<HTMLTextAreaElement | null>
  text: string
  onText: (text: string) => void
  /** The label of the list. */
  label: string
  /** The unfinished word at the end of the text up to the caret, after its @. */
  begun: (before: string) => string | undefined
  find: (begun: string) => readonly T[]
  keyOf: (item: T) => string
  /** The replacement of the unfinished word, and of `over` characters before it. */
  insert: (item: T) => { text: string; over: number }
  show: (item: T) => ReactNode
}

export function useSuggestions<T>(parts: SuggestionParts<T>): Suggestions {
  const { field, text } = parts
  const listId = useId()
  const [caret, setCaret] = useState(0)
  const [at, setAt] = useState(0)
  const [closed, setClosed] = useState<string | null>(null)
  const caretAfter = useRef<number | undefined>(undefined)
  useLayoutEffect(() => {
    if (caretAfter.current !== undefined) {
      field.current?.focus()
      field.current?.setSelectionRange(caretAfter.current, caretAfter.current)
      caretAfter.current = undefined
    }
    setCaret(field.current?.selectionStart ?? 0)
    setAt(0)
  }, [field, text])
  const before = text.slice(0, caret)
  const begun = closed === before ? undefined : parts.begun(before)
  const found = begun === undefined ? [] : parts.find(begun)
  const choose = (item: T) => {
    const inserted = parts.insert(item)
    const start = caret - (begun ?? '').length - inserted.over
    const until = `${text.slice(0, start)}${inserted.text}`
    // Set with the text: a frame later it would move the caret of what is typed by then.
    caretAfter.current = until.length
    parts.onText(until + text.slice(caret).trimStart())
  }
  const chosen = found[Math.min(at, found.length - 1)]
  if (chosen === undefined) return { list: null, field: {}, onKeyDown: () => false }
  return {
    list: <SuggestionList id={listId} parts={parts} found={found} chosen={chosen} onChoose={choose} />,
    field: {
      'aria-haspopup': 'listbox',
      'aria-controls': listId,
      'aria-autocomplete': 'list',
      'aria-activedescendant': `${listId}-${parts.keyOf(chosen)}`,
    },
    onKeyDown(event) {
      if (event.key === 'ArrowDown' || event.key === 'ArrowUp')
        setAt((found.indexOf(chosen) + (event.key === 'ArrowDown' ? 1 : found.length - 1)) % found.length)
      else if (event.key === 'Enter' || event.key === 'Tab') choose(chosen)
      else if (event.key === 'Escape') {
        setClosed(before)
        event.stopPropagation()
        event.nativeEvent.stopImmediatePropagation()
      } else return false
      event.preventDefault()
      return true
    },
  }
}

function SuggestionList<T>(props: {
  id: string
  parts: SuggestionParts<T>
  found: readonly T[]
  chosen: T
  onChoose: (item: T) => void
}) {
  const { id, parts, found, chosen } = props
  return (
    <ul
      id={id}
      role="listbox"
      aria-label={parts.label}
      className="popup absolute bottom-full left-2 z-20 mb-2 w-80 max-w-[calc(100%-1rem)] rounded-xl border border-line bg-raised p-1.5 shadow-3"
    >
      {found.map((item) => (
        <li
          key={parts.keyOf(item)}
          id={`${id}-${parts.keyOf(item)}`}
          role="option"
          aria-selected={item === chosen}
          // The field keeps its focus.
          onPointerDown={(event) => event.preventDefault()}
          onClick={() => props.onChoose(item)}
          className={cn(
            'flex h-9 cursor-pointer items-center gap-2.5 rounded-lg px-2.5 text-sm pointer-coarse:h-11',
            item === chosen && 'bg-hover',
          )}
        >
          {parts.show(item)}
        </li>
      ))}
    </ul>
  )
}
