import type { SearchHit, SearchKind } from '@sandlot/shared/search/search'
import {
  Bot,
  type LucideIcon,
  MessageSquare,
  MessagesSquare,
  ScrollText,
  SquareTerminal,
  User,
} from 'lucide-react'
import { Fragment } from 'react'
import { Link } from 'wouter'
import { scrollToEntry } from '../chat/transcript/scroll-to-entry.ts'
import { formatDay } from '../lib/format.ts'
import { Revealed } from '../ui/revealed.tsx'

const KIND: Record<SearchKind, { icon: LucideIcon; word: string }> = {
  title: { icon: MessagesSquare, word: 'Name of the chat' },
  message: { icon: User, word: 'Message' },
  answer: { icon: Bot, word: 'Answer' },
  comment: { icon: MessageSquare, word: 'Comment' },
  command: { icon: SquareTerminal, word: 'Command' },
  output: { icon: ScrollText, word: 'Output' },
}

/** The address of a hit: its chat, at its position. */
function placeOf({ sessionId, kind, id }: SearchHit): string {
  return kind === 'title' ? `/s/${sessionId}` : `/s/${sessionId}#${encodeURIComponent(id)}`
}

/** Each leads to its place in its chat. */
export function SearchHits(props: { hits: readonly SearchHit[]; onPick: () => void }) {
  const now = Date.now()
  return (
    <ul className="flex flex-col gap-px">
      {props.hits.map((hit) => {
        const { icon: Icon, word } = KIND[hit.kind]
        return (
          <li key={`${hit.sessionId} ${hit.kind} ${hit.seq}`} data-testid="search-hit">
            <Link
              href={placeOf(hit)}
              onClick={() => {
                // Also where that chat is on the screen already.
                if (hit.kind !== 'title') scrollToEntry(hit.id)
                props.onPick()
              }}
              className="block rounded-lg px-2.5 py-1.5 hover:bg-hover pointer-coarse:py-2.5"
            >
              <span className="flex items-center gap-1.5 text-xs text-muted">
                <span title={word} className="shrink-0">
                  <Icon className="size-3.5 text-faint" aria-hidden />
                  <span className="sr-only">{word} in</span>
                </span>
                <span dir="auto" className="min-w-0 flex-1 truncate">
                  <Revealed text={hit.title ?? 'New chat'} />
                </span>
                <time dateTime={new Date(hit.at).toISOString()} className="shrink-0 text-2xs text-faint">
                  {formatDay(hit.at, now)}
                </time>
              </span>
              <span
                dir="auto"
                className={`mt-0.5 line-clamp-3 text-sm [overflow-wrap:anywhere] ${hit.kind === 'command' || hit.kind === 'output' ? 'font-mono text-xs' : ''}`}
              >
                {hit.by !== undefined && hit.kind === 'comment' && (
                  <span className="text-muted">
                    <Revealed text={hit.by.name} />:{' '}
                  </span>
                )}
                {hit.snippet.map(({ text, match }, index) => {
                  const words = <Revealed text={text} />
                  // Pieces of one text in their order: they have no other identity.
                  return match === true ? (
                    // oxlint-disable-next-line react/no-array-index-key
                    <mark key={index}>{words}</mark>
                  ) : (
                    // oxlint-disable-next-line react/no-array-index-key
                    <Fragment key={index}>{words}</Fragment>
                  )
                })}
              </span>
            </Link>
          </li>
        )
      })}
    </ul>
  )
}
