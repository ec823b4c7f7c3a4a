/** Of the composer in a shared chat: whether it writes a comment, and who is mentioned in it. */
import type { Author } from '@sandlot/shared/team/shares'
import { MessageSquare } from 'lucide-react'
import { type KeyboardEvent, type ReactNode, type RefObject, useEffect, useId, useState } from 'react'
import { cn } from '../../lib/cn.ts'
import { PersonMark } from '../../ui/person-mark.tsx'
import { Revealed } from '../../ui/revealed.tsx'
import { begunMention, candidates } from '../sharing/mentions.ts'

export function CommentSwitch(props: { on: boolean; onToggle: () => void }) {
  return (
    <button
      type="button"
      role="switch"
      aria-checked={props.on}
      aria-label="Comment, not for the agent"
      title="Comment, not for the agent"
      data-testid="comment-switch"
      onClick={props.onToggle}
      className={cn(
        'inline-flex h-8 shrink-0 items-center gap-1.5 rounded-lg px-2 text-xs font-medium pointer-coarse:h-11 pointer-coarse:min-w-11',
        props.on ? 'bg-accent-wash text-accent' : 'text-muted hover:bg-hover hover:text-ink',
      )}
    >
      <MessageSquare className="size-4" aria-hidden />
      {props.on ? 'Comment, not for the agent' : <span className="max-sm:hidden">Comment</span>}
    </button>
  )
}

interface Mention {
  /** Above the field while a name is being written. */
  list: ReactNode
  /** For the field. */
  field: Record<`aria-${string}`, string | boolean | undefined>
  /** True: the key was for the list. */
  onKeyDown: (event: KeyboardEvent<HTMLTextAreaElement>) => boolean
}

/** Completes the name behind an @ at the caret. */
export function useMention(
  field: RefObject<HTMLTextAreaElement | null>,
  text: string,
  people: readonly Author[],
  onText: (text: string) => void,
): Mention {
  const listId = useId()
  const [caret, setCaret] = useState(0)
  const [at, setAt] = useState(0)
  const [closed, setClosed] = useState<string | null>(null)
  useEffect(() => {
    setCaret(field.current?.selectionStart ?? 0)
    setAt(0)
  }, [field, text])
  const before = text.slice(0, caret)
  const begun = people.length === 0 || closed === before ? undefined : begunMention(before)
  const found = begun === undefined ? [] : candidates(begun, people)
  const choose = (person: Author) => {
    const start = caret - (begun ?? '').length
    const until = `${text.slice(0, start)}${person.name} `
    onText(until + text.slice(caret).trimStart())
    requestAnimationFrame(() => {
      field.current?.focus()
      field.current?.setSelectionRange(until.length, until.length)
      setCaret(until.length)
    })
  }
  const chosen = found[Math.min(at, found.length - 1)]
  if (chosen === undefined) return { list: null, field: {}, onKeyDown: () => false }
  return {
    list: (
      <ul
        id={listId}
        role="listbox"
        aria-label="People in this chat"
        className="popup absolute bottom-full left-2 z-20 mb-2 w-64 max-w-[calc(100%-1rem)] rounded-xl border border-line bg-raised p-1.5 shadow-3"
      >
        {found.map((person) => (
          <li
            key={person.id}
            id={`${listId}-${person.id}`}
            role="option"
            aria-selected={person === chosen}
            // The field keeps its focus.
            onPointerDown={(event) => event.preventDefault()}
            onClick={() => choose(person)}
            className={cn(
              'flex h-9 cursor-pointer items-center gap-2.5 rounded-lg px-2.5 text-sm pointer-coarse:h-11',
              person === chosen && 'bg-hover',
            )}
          >
            <PersonMark {...person} className="size-5" />
            <span className="min-w-0 truncate">
              <Revealed text={person.name} />
            </span>
          </li>
        ))}
      </ul>
    ),
    field: {
      'aria-haspopup': 'listbox',
      'aria-controls': listId,
      'aria-autocomplete': 'list',
      'aria-activedescendant': `${listId}-${chosen.id}`,
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
