/**
 * The conversation, one memoised row for each entry; an entry that did not change is not drawn
 * again.
 */
import { activityOf, pendingApprovals } from '@sandlot/shared/transcript/activity'
import type { Entry, MessageEntry } from '@sandlot/shared/transcript/entries'
import type { Transcript } from '@sandlot/shared/transcript/transcript'
import { messageOf } from '@sandlot/shared/errors'
import { X } from 'lucide-react'
import { memo, useMemo } from 'react'
import { uploadAgain } from '../../net/images.ts'
import type { Chat } from '../../state/chat.ts'
import type { Notice, SessionView } from '../../state/chat-state.ts'
import type { PendingMessage } from '../../state/outbox.ts'
import { Alert, Hint } from '../../ui/alert.tsx'
import { IconButton } from '../../ui/button.tsx'
import { ActivityLine } from './activity-line.tsx'
import { asksApproval } from '../approvals/approval-bar.tsx'
import {
  AssistantMessage,
  CallRunRow,
  CommentRow,
  DraftCard,
  NoteRow,
  PendingUserMessage,
  Thought,
  UserMessage,
} from './message-rows.tsx'
import { type CallRun, withRuns } from '../calls/call-runs.ts'
import { useChat } from '../chat-context.ts'
import { useReading } from '../sharing/reading.ts'
import { hasWords, PromptEnd } from './prompt-end.tsx'
import { ToolCard } from '../calls/tool-card.tsx'

/** As many as a high screen shows at the end of a chat, where it opens. */
const NEAR = 40

export function TranscriptView(props: {
  sessionId: string | null
  view: SessionView
  outbox: readonly PendingMessage[]
  online: boolean
  stopping: boolean
  /** The call that a key has brought into view. */
  marked: string | null
}) {
  const { sessionId, view } = props
  const { transcript } = view
  const { chat } = useChat()
  const waiting = useMemo(() => pendingApprovals(transcript).map(({ id }) => id), [transcript])
  const keyed = useMemo(() => pendingApprovals(transcript).find(asksApproval)?.id, [transcript])
  const rows = useMemo(() => withRuns(transcript.entries), [transcript.entries])
  const retryable = useMemo(() => lastSaid(transcript), [transcript])
  const firsts = useMemo(() => firstOfPrompts(transcript.entries), [transcript.entries])
  const sending = props.outbox.some((message) => message.problem === undefined)
  return (
    <div
      role="log"
      aria-label="Conversation"
      // A message is announced when it is whole, not token by token.
      aria-busy={activityOf(transcript)?.doing === 'writing'}
      className="flex flex-col"
    >
      {rows.map((entry, index) =>
        entry.type === 'run' ? (
          <div
            key={`run ${entry.id}`}
            className={`row ${index < rows.length - NEAR ? 'row-far ' : ''}${gapOf(entry, rows[index - 1])}`}
          >
            <CallRunRow run={entry} sessionId={sessionId ?? ''} />
          </div>
        ) : (
          <Row
            key={`${entry.type} ${entry.id}`}
            entry={entry}
            gap={gapOf(entry, rows[index - 1])}
            before={rows[index + 1]?.type}
            sessionId={sessionId ?? ''}
            far={index < rows.length - NEAR}
            place={placeOf(entry, waiting)}
            keyed={entry.id === (props.marked ?? keyed)}
            marked={entry.id === props.marked}
            ended={endedOf(entry, transcript)}
            first={firsts.has(entry)}
            // What is on its way is the next try.
            retry={index === rows.length - 1 && !sending ? retryable : null}
          />
        ),
      )}
      {transcript.drafts.map((draft) => (
        <div key={`${draft.messageId} ${draft.place}`} className={draft.place === 0 ? 'pt-4' : 'pt-1.5'}>
          <DraftCard draft={draft} />
        </div>
      ))}
      {props.outbox.map((message) => (
        <div key={message.requestId} className="pt-6">
          <PendingUserMessage message={message} online={props.online} />
        </div>
      ))}
      <div className="pt-3 empty:hidden">
        <ActivityLine transcript={transcript} sending={sending && props.online} stopping={props.stopping} />
      </div>
      {view.notices.map((notice) => (
        <NoticeRow
          key={notice.id}
          notice={notice}
          onDismiss={() => sessionId !== null && chat.dismissNotice(sessionId, notice.id)}
        />
      ))}
    </div>
  )
}

const Row = memo(function Row(props: {
  entry: Entry
  gap: string
  /** What stands behind it. */
  before: (Entry | CallRun)['type'] | undefined
  sessionId: string
  far: boolean
  /** As of `ToolCard`. */
  place: string | undefined
  keyed: boolean
  marked: boolean
  /** Its prompt, when that has ended and this is a message of the person. */
  ended: string | undefined
  /** It began its prompt. */
  first: boolean
  retry: MessageEntry | null
}) {
  const { entry, retry } = props
  const { chat } = useChat()
  const { access } = useReading()
  if (entry.type === 'end' && !hasWords(entry)) return null
  return (
    <div className={`row ${props.far ? 'row-far ' : ''}${props.gap}`}>
      {entry.type === 'call' ? (
        <ToolCard
          call={entry}
          sessionId={props.sessionId}
          place={props.place}
          keyed={props.keyed}
          marked={props.marked}
        />
      ) : entry.type === 'end' ? (
        <PromptEnd
          entry={entry}
          onRetry={retry === null || access === 'watch' ? null : () => sayAgain(chat, props.sessionId, retry)}
        />
      ) : entry.type === 'note' ? (
        <NoteRow entry={entry} />
      ) : entry.type === 'comment' ? (
        <CommentRow entry={entry} />
      ) : entry.role === 'user' ? (
        <UserMessage
          text={entry.text}
          images={entry.images}
          sessionId={props.sessionId}
          ended={props.ended}
          first={props.first}
          author={entry.author}
        />
      ) : entry.role === 'assistant' ? (
        <AssistantMessage entry={entry} last={props.before === undefined || props.before === 'end'} />
      ) : (
        <Thought entry={entry} />
      )}
    </div>
  )
})

/** Cards of one turn stand close together; everything else has room. */
function gapOf(entry: Entry | CallRun, before: Entry | CallRun | undefined): string {
  const isCard = ({ type }: Entry | CallRun) => type === 'call' || type === 'run'
  if (isCard(entry) && before !== undefined && isCard(before)) return 'pt-1.5'
  return entry.type === 'message' && entry.role === 'user' ? 'pt-8' : 'pt-4'
}

/** “1 of 3”, where several wait. */
function placeOf(entry: Entry, waiting: readonly string[]): string | undefined {
  const at = waiting.indexOf(entry.id)
  return at === -1 || waiting.length < 2 ? undefined : `${at + 1} of ${waiting.length}`
}

function NoticeRow(props: { notice: Notice; onDismiss: () => void }) {
  const Frame = props.notice.code === 'conflict' ? Hint : Alert
  return (
    <div className="pt-4">
      <Frame>
        <div className="flex items-start justify-between gap-3">
          <span>{props.notice.message}</span>
          <IconButton label="Dismiss" onClick={props.onDismiss} className="-my-1.5">
            <X aria-hidden />
          </IconButton>
        </div>
      </Frame>
    </div>
  )
}

/** Only a message whose prompt has ended. */
function endedOf(entry: Entry, { prompt }: Transcript): string | undefined {
  if (entry.type !== 'message' || entry.role !== 'user') return undefined
  return entry.promptId === prompt?.id ? undefined : entry.promptId
}

/** The messages that began their prompts; the others joined one that ran. */
function firstOfPrompts(entries: readonly Entry[]): ReadonlySet<Entry> {
  const begun = new Set<string>()
  return new Set(
    entries.filter((entry) => {
      if (entry.type !== 'message' || entry.role !== 'user' || entry.promptId === undefined) return false
      const isFirst = !begun.has(entry.promptId)
      begun.add(entry.promptId)
      return isFirst
    }),
  )
}

/** What was said last, when its prompt ended in an error and it can be sent again. */
function lastSaid(transcript: Transcript): MessageEntry | null {
  const last = transcript.entries.at(-1)
  if (last?.type !== 'end' || last.reason !== 'error') return null
  const said = transcript.entries.findLast((entry) => entry.type === 'message' && entry.role === 'user')
  return said?.type === 'message' ? said : null
}

async function sayAgain(chat: Chat, sessionId: string, { text, images = [] }: MessageEntry): Promise<void> {
  try {
    const { sent, left } = await uploadAgain(images)
    if (text === '' && sent.length === 0)
      return chat.warn(sessionId, 'The images of this message cannot be sent from here.')
    chat.send(sessionId, text, { images: sent })
    if (left > 0) chat.warn(sessionId, 'Sent again without images that cannot be sent from here.')
  } catch (error) {
    chat.warn(sessionId, messageOf(error))
  }
}
