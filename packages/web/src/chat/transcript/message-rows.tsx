import { formatBytes } from '@sandlot/shared/base/format-bytes'
import { cutWords } from '@sandlot/shared/transcript/cause-words'
import type { MessageImage } from '@sandlot/shared/chat/images'
import type { CommentEntry, MessageEntry, NoteEntry } from '@sandlot/shared/transcript/entries'
import { ChevronRight, CircleAlert, Clock, MessageSquare, PencilLine, Unplug } from 'lucide-react'
import { memo, useId, useMemo } from 'react'
import { noteWords } from '@sandlot/shared/transcript/cause-words'
import type { DraftedCall } from '@sandlot/shared/transcript/call-drafts'
import { cn } from '../../lib/cn.ts'
import { AnswerFiles } from '../../preview/file-card.tsx'
import { Markdown } from '../../markdown/markdown.tsx'
import { waitingImageUrl } from '../../net/images.ts'
import type { PendingMessage } from '../../state/outbox.ts'
import { Alert } from '../../ui/alert.tsx'
import { Boundary } from '../../ui/boundary.tsx'
import { Button } from '../../ui/button.tsx'
import { CopyButton } from '../../ui/copy-button.tsx'
import { Revealed } from '../../ui/revealed.tsx'
import { PersonMark } from '../../ui/person-mark.tsx'
import { useChat } from '../../state/chat-context.ts'
import { partsOf } from '../sharing/mentions.ts'
import { useOther, useReading } from '../../state/reading.ts'
import { useBranches } from './branches.ts'
import { EditMessage } from './edit-message.tsx'
import { ACTION } from './message-action.ts'
import { MessageActions } from './message-actions.tsx'
import { MessageImages } from './message-images.tsx'
import { Regenerate } from './regenerate.tsx'
import { AttachedFiles, MessageWords } from './message-words.tsx'
import { readAttachedFiles } from '../attached-files.ts'
import { useRemembered } from './remembered.ts'
import { runWords, type CallRun } from '../calls/call-runs.ts'
import { ToolCard } from '../calls/tool-card.tsx'
import { ToolIcon } from '../calls/tool-icon.tsx'
import { draftSubject, draftTail } from '../calls/draft-words.ts'

const BUBBLE =
  'max-w-[85%] rounded-2xl rounded-br-md border border-transparent bg-bubble px-4 py-2.5 text-base leading-relaxed whitespace-pre-wrap [overflow-wrap:anywhere] [unicode-bidi:plaintext]'

/** Images above the words, as they were attached. `by`: of a message of another. */
function Said(props: {
  text: string
  images: readonly MessageImage[] | undefined
  failed?: boolean
  by?: string
}) {
  const { images = [], by } = props
  const { words: text, paths } = useMemo(() => readAttachedFiles(props.text), [props.text])
  return (
    <>
      {images.length > 0 && (
        <MessageImages
          images={images}
          what={by === undefined ? 'attached to your message' : `attached by ${by}`}
          className={cn('max-w-[85%]', by === undefined && 'justify-end', text !== '' && 'mb-2')}
        />
      )}
      {paths.length > 0 && <AttachedFiles paths={paths} end={by === undefined} above={text !== ''} />}
      {text !== '' && (
        <div
          dir="auto"
          className={cn(
            BUBBLE,
            by !== undefined && 'rounded-tl-md rounded-br-2xl',
            props.failed === true && 'border-failed-line',
          )}
        >
          <MessageWords words={text} />
        </div>
      )}
    </>
  )
}

/**
 * `ended`: as of `MessageActions`. `first`: it began its prompt. `editing`: its author changes it.
 */
export const UserMessage = memo(function UserMessage(props: {
  entry: MessageEntry
  sessionId: string
  ended: string | undefined
  first: boolean
  editing: boolean
  onEditing: (messageId: string | null) => void
}) {
  const { entry, sessionId, ended, first, editing, onEditing } = props
  const { id, text, images = [], promptId } = entry
  const other = useOther(entry.author)
  const { resend } = useBranches()
  const { access } = useReading()
  const about = { text, sessionId, promptId: first ? promptId : undefined, ended }
  if (other !== null) {
    return (
      <div data-testid="message-user" className="group/message flex gap-2.5">
        <PersonMark {...other} className="mt-px" />
        <div className="flex min-w-0 flex-1 flex-col items-start">
          <p className="mb-1 max-w-full truncate text-sm leading-6 font-medium">
            <Revealed text={other.name} />
            <span className="sr-only">: </span>
          </p>
          <Said text={text} images={images} by={other.name} />
          <MessageActions by={other.name} {...about} />
        </div>
      </div>
    )
  }
  const mayEdit = first && ended !== undefined && resend !== undefined && access !== 'watch'
  if (editing && mayEdit) {
    return (
      <div data-testid="message-user" className="flex flex-col items-end pb-2">
        <EditMessage
          text={text}
          images={images}
          onEnd={(words) => {
            onEditing(null)
            if (words !== null) void resend(ended, { text: words, images })
          }}
        />
      </div>
    )
  }
  return (
    <div data-testid="message-user" className="group/message flex flex-col items-end">
      <span className="sr-only">You: </span>
      <Said text={text} images={images} />
      <MessageActions {...about} onEdit={mayEdit ? () => onEditing(id) : undefined} />
    </div>
  )
})

/** A message of this tab that the transcript does not show yet. */
export function PendingUserMessage(props: { message: PendingMessage; online: boolean }) {
  const { message } = props
  const { chat } = useChat()
  const images = useMemo(
    () => message.images?.map(({ id, mimeType }) => ({ mimeType, data: '', uri: waitingImageUrl(id) })),
    [message.images],
  )
  return (
    <div data-testid="message-user" data-pending="true" className="flex flex-col items-end gap-1.5">
      <span className="sr-only">You: </span>
      <Said text={message.text} images={images} failed={message.problem !== undefined} />
      {message.problem !== undefined ? (
        <div
          role="alert"
          className="flex max-w-[85%] flex-wrap items-center justify-end gap-2 text-xs text-muted"
        >
          <span className="inline-flex items-center gap-1.5 text-failed">
            <CircleAlert className="size-3.5 shrink-0" aria-hidden /> {message.problem.message}
          </span>
          <Button size="sm" onClick={() => chat.sendAgain(message.requestId)}>
            Send again
          </Button>
          <Button size="sm" variant="ghost" onClick={() => chat.discard(message.requestId)}>
            Discard
          </Button>
        </div>
      ) : (
        // The height of its replacement.
        <span className="-mt-0.5 inline-flex min-h-7 items-center gap-1.5 text-xs text-faint pointer-coarse:min-h-11">
          {!props.online && (
            <>
              <Clock className="size-3" aria-hidden /> Will be sent when you’re back online
            </>
          )}
        </span>
      )}
    </div>
  )
}

/**
 * `last`: nothing follows but the end, so this is what one would copy; words between two calls are
 * only in passing. `newest`: the end of the chat, whose actions are always shown.
 */
export const AssistantMessage = memo(function AssistantMessage(props: {
  entry: MessageEntry
  sessionId: string
  last: boolean
  newest: boolean
}) {
  const { entry } = props
  return (
    <div
      data-testid="message-assistant"
      data-settled={entry.settled}
      data-newest={props.newest || undefined}
      className="group/message relative"
    >
      <span className="sr-only">Sandlot: </span>
      {entry.cut === undefined ? (
        <Markdown text={entry.text} streaming={!entry.settled} />
      ) : (
        <CutOff why={entry.cut}>
          <Markdown text={entry.text} streaming={false} />
        </CutOff>
      )}
      {entry.settled && <AnswerFiles text={entry.text} />}
      {entry.settled && props.last && (
        <div className="mt-1 -ml-1.5 flex min-h-7 items-center pointer-coarse:-ml-3.5">
          <CopyButton text={entry.text} what="message" quiet className={ACTION} />
          <Regenerate sessionId={props.sessionId} promptId={entry.promptId} />
        </div>
      )}
    </div>
  )
})

/** The received part of an answer that broke off: readable, but not in the conversation. */
function CutOff(props: { why: string; children: React.ReactNode }) {
  return (
    <div data-testid="cut-off" className="border-l-2 border-line pl-4 text-muted">
      {props.children}
      <p className="mt-2 flex items-center gap-1.5 text-sm text-muted">
        <Unplug className="size-3.5 shrink-0 text-faint" aria-hidden />
        Cut off here. {cutWords(props.why)}.
      </p>
    </div>
  )
}

/** The model's reasoning, folded. */
export const Thought = memo(function Thought(props: { entry: MessageEntry }) {
  const { entry } = props
  const [open, setOpen] = useRemembered(`thought ${entry.id}`)
  return (
    <div data-testid="thought">
      <button
        type="button"
        aria-expanded={open === true}
        onClick={() => setOpen(open !== true)}
        className="-ml-1.5 inline-flex items-center gap-1.5 rounded-md px-1.5 py-1 text-sm text-muted hover:bg-hover hover:text-ink pointer-coarse:min-h-11"
      >
        <ChevronRight
          className={cn('size-3.5 transition-transform duration-100', open === true && 'rotate-90')}
          aria-hidden
        />
        <span className={entry.settled ? undefined : 'shimmer'}>
          {entry.cut !== undefined ? 'Thought, cut off' : entry.settled ? 'Thought' : 'Thinking…'}
        </span>
      </button>
      {open === true && (
        <div
          dir="auto"
          className="mt-1 ml-1 border-l-2 border-line pl-4 text-sm leading-relaxed whitespace-pre-wrap text-muted [overflow-wrap:anywhere] [unicode-bidi:plaintext]"
        >
          <Revealed text={entry.text} />
        </div>
      )}
    </div>
  )
})

/** One quiet line between the messages. */
export const NoteRow = memo(function NoteRow(props: { entry: NoteEntry }) {
  return (
    <p data-testid="note" className="text-sm text-muted [overflow-wrap:anywhere]">
      {noteWords(props.entry.event)}
    </p>
  )
})

/** A comment to the other people in the chat; the model does not read it. */
export const CommentRow = memo(function CommentRow(props: { entry: CommentEntry }) {
  const { author, text, mentions } = props.entry
  const { me } = useChat()
  const { people } = useReading()
  const other = useOther(author)
  const mentioned = people.filter(({ id }) => mentions.includes(id))
  const name = other?.name ?? 'You'
  return (
    <aside data-testid="comment" aria-label={`Comment by ${name}`} className="flex gap-2.5">
      <PersonMark id={other?.id ?? me.id} name={other?.name ?? me.name} className="mt-px" />
      <div className="min-w-0 flex-1 border-l-2 border-dashed border-line-strong pl-3">
        <p className="flex flex-wrap items-center gap-x-2 text-sm leading-6">
          <span className="min-w-0 truncate font-medium">
            <Revealed text={name} />
          </span>
          <span className="inline-flex items-center gap-1 text-xs text-faint">
            <MessageSquare className="size-3" aria-hidden /> Comment, not read by the agent
          </span>
        </p>
        <p
          dir="auto"
          className="text-base leading-relaxed whitespace-pre-wrap text-muted [overflow-wrap:anywhere] [unicode-bidi:plaintext]"
        >
          {partsOf(text, mentioned).map(({ person, text: words, at }) =>
            person === undefined ? (
              <Revealed key={at} text={words} />
            ) : (
              <span
                key={at}
                className={
                  person.id === me.id
                    ? 'rounded bg-accent-wash px-0.5 font-medium text-accent'
                    : 'font-medium text-ink'
                }
              >
                <Revealed text={words} />
              </span>
            ),
          )}
        </p>
      </div>
    </aside>
  )
})

/** Calls that all went well, folded into one row. `wanted`: open when it is one of them. */
export const CallRunRow = memo(function CallRunRow(props: {
  run: CallRun
  sessionId: string
  wanted: string | undefined
}) {
  const { run } = props
  const [chosen, setOpen] = useRemembered(`run ${run.id}`)
  const open = chosen ?? run.calls.some(({ id }) => id === props.wanted)
  const listId = useId()
  return (
    <section data-testid="call-run" aria-label={runWords(run)}>
      <button
        type="button"
        aria-expanded={open}
        aria-controls={listId}
        onClick={() => setOpen(!open)}
        className="flex min-h-9 w-full items-center gap-2.5 rounded-lg border border-line px-3 py-1.5 text-left text-sm text-muted hover:bg-hover focus-visible:-outline-offset-2 pointer-coarse:min-h-11"
      >
        <ToolIcon kind={run.calls[0]?.kind ?? 'other'} className="size-4 shrink-0 text-faint" />
        <span className="min-w-0 flex-1 tabular-nums">{runWords(run)}</span>
        <ChevronRight
          className={cn('size-4 shrink-0 text-faint transition-transform duration-100', open && 'rotate-90')}
          aria-hidden
        />
      </button>
      <div id={listId} hidden={!open} className="mt-1.5 flex flex-col gap-1.5 border-l-2 border-line pl-2.5">
        {open &&
          run.calls.map((call) => (
            <Boundary key={call.id} of={call} fallback={<Alert>This call couldn’t be shown.</Alert>}>
              <ToolCard call={call} sessionId={props.sessionId} />
            </Boundary>
          ))}
      </div>
    </section>
  )
})

/*
 * A call that the model is still writing. Nothing of it runs yet; the card of the call takes its
 * place.
 */

/** Shorter text stands in the header. */
const LONG_CHARS = 160
const LINES = 6

export const DraftCard = memo(function DraftCard(props: { draft: DraftedCall }) {
  const { name, chars, text } = props.draft
  const subject = draftSubject(text)
  return (
    <article
      data-testid="draft-card"
      aria-label={`${name}: being written`}
      className="overflow-hidden rounded-lg border border-dashed border-line-strong"
    >
      <div className="flex min-h-9 items-center gap-2.5 px-3 py-1.5">
        <PencilLine className="size-4 shrink-0 text-accent" aria-hidden />
        <span className="min-w-0 flex-1 truncate text-sm text-ink">
          {name}
          {subject !== undefined && (
            <span className="ml-2 font-mono text-xs text-muted">
              <Revealed text={subject.replaceAll('\n', ' ')} />
            </span>
          )}
        </span>
        <span className="flex shrink-0 items-center gap-2 text-xs text-accent tabular-nums">
          <span className="shimmer font-medium">Writing</span>
          {chars > LONG_CHARS && <span className="text-faint">{formatBytes(chars)}</span>}
        </span>
      </div>
      {chars > LONG_CHARS && (
        <pre
          className="term flex max-h-32 flex-col justify-end overflow-hidden px-3 pb-2.5 text-muted"
          aria-hidden
        >
          <Revealed text={draftTail(text, LINES)} />
        </pre>
      )}
    </article>
  )
})
