/** `@` in the composer: a person in a comment, the path of a file of the workspace in a message. */
import type { Author } from '@sandlot/shared/chat/shares'
import { File as FileIcon, Folder } from 'lucide-react'
import { type RefObject, useEffect, useState } from 'react'
import { useResource } from '../../state/use-resource.ts'
import { call } from '../../net/call.ts'
import { PersonMark } from '../../ui/person-mark.tsx'
import { Revealed } from '../../ui/revealed.tsx'
import { pathInWords } from '../attached-files.ts'
import { begunMention, candidates } from '../sharing/mentions.ts'
import { type Suggestions, useSuggestions } from './use-suggestions.tsx'

/** Completes the name behind an @ at the caret. */
export function useMention(
  field: RefObject<HTMLTextAreaElement | null>,
  text: string,
  people: readonly Author[],
  onText: (text: string) => void,
): Suggestions {
  return useSuggestions({
    field,
    text,
    onText,
    label: 'People in this chat',
    begun: people.length === 0 ? () => undefined : begunMention,
    find: (begun) => candidates(begun, people),
    keyOf: ({ id }) => id,
    insert: ({ name }) => ({ text: `${name} `, over: 0 }),
    show: (person) => (
      <>
        <PersonMark {...person} className="size-5" />
        <span className="min-w-0 truncate">
          <Revealed text={person.name} />
        </span>
      </>
    ),
  })
}

/** So long after the last letter. */
const PAUSE_MS = 120
const MOST_SHOWN = 8

const begunFile = (before: string): string | undefined => /(?:^|\s)@([^\s@"]{0,100})$/.exec(before)?.[1]

/** Completes the name behind an @ at the caret. `on`: the reader has a workspace here. */
export function useFileMention(
  field: RefObject<HTMLTextAreaElement | null>,
  text: string,
  on: boolean,
  onText: (text: string) => void,
): Suggestions {
  const [wanted, setWanted] = useState<string | undefined>(undefined)
  useEffect(() => {
    const caret = field.current?.selectionStart ?? 0
    setWanted(on ? begunFile(text.slice(0, caret)) : undefined)
  }, [field, text, on])
  // Without the list the name is written by hand.
  const { data, problem } = useResource(
    wanted ?? null,
    (signal) => call('findFiles', { query: { q: wanted, most: MOST_SHOWN }, signal }),
    { keep: true, pauseMs: PAUSE_MS },
  )
  return useSuggestions({
    field,
    text,
    onText,
    label: 'Files of your workspace',
    begun: (before) => (on ? begunFile(before) : undefined),
    find: () => (problem === null ? (data?.entries ?? []) : []),
    keyOf: ({ path }) => path,
    insert: ({ path }) => ({ text: `${pathInWords(path)} `, over: 1 }),
    show: ({ path, kind }) => {
      const name = path.slice(path.lastIndexOf('/') + 1)
      const Icon = kind === 'directory' ? Folder : FileIcon
      return (
        <>
          <Icon className="size-4 shrink-0 text-faint" aria-hidden />
          <span className="max-w-[70%] shrink-0 truncate">
            <Revealed text={name} />
          </span>
          <span className="min-w-0 flex-1 truncate text-right text-xs text-muted">
            <Revealed text={path.slice(0, Math.max(0, path.length - name.length - 1))} />
          </span>
        </>
      )
    },
  })
}
