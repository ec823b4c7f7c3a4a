/**
 * The conversation, one memoised row for each entry, in blocks; a block in which nothing changed is
 * not drawn again, and one that is far away is not drawn at all.
 */
import { activityOf, pendingApprovals } from '@sandlot/shared/transcript/activity'
import type { EndEntry, Entry, MessageEntry } from '@sandlot/shared/transcript/entries'
import { type Transcript, promptOf } from '@sandlot/shared/transcript/transcript'
import { X } from 'lucide-react'
import {
  memo,
  type RefObject,
  useEffect,
  useEffectEvent,
  useLayoutEffect,
  useMemo,
  useRef,
  useState,
} from 'react'
import { type ChatNotification, type SessionView } from '../../state/chat-state.ts'
import type { PendingMessage } from '../../state/outbox.ts'
import { Alert, Hint } from '../../ui/alert.tsx'
import { Boundary } from '../../ui/boundary.tsx'
import { Button, IconButton } from '../../ui/button.tsx'
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
import { withRuns } from '../calls/call-runs.ts'
import { useChat } from '../../state/chat-context.ts'
import { useReading } from '../../state/reading.ts'
import { type Block, Blocks, promptOfRow, type Row } from './blocks.ts'
import { hasWords, PromptEnd, PromptSpent } from './prompt-end.tsx'
import { RememberedProvider } from './remembered.ts'
import { useWantedEntry } from './scroll-to-entry.ts'
import { useLeaveEnd } from './scroller.tsx'
import { sayAgain } from './say-again.ts'
import { Sight, useNear } from './sight.ts'
import { ChangesLine } from '../../changes/changes-line.tsx'
import { useBranches } from './branches.ts'
import { ToolCard } from '../calls/tool-card.tsx'

/** Blocks at the end that are always drawn: where one reads, and what a screen reader announces. */
const TAIL = 2
/** Blocks that a high screen shows at the end of a chat, where it opens. */
const AT_FIRST = 4
/** About the height of a row that was never drawn, in pixels. */
const ROW_HEIGHT = 72

export function TranscriptView(props: {
  sessionId: string | null
  view: SessionView
  /** That of the shown branch. */
  transcript: Transcript
  outbox: readonly PendingMessage[]
  online: boolean
  stopping: boolean
  /** The call that a key has brought into view. */
  marked: string | null
}) {
  const { sessionId, view, transcript } = props
  const { entries, prompt } = transcript
  const log = useRef<HTMLDivElement>(null)
  const [sight] = useState(() => new Sight())
  const [remembered] = useState(() => new Map<string, boolean>())
  const { rows, blocks } = useBlocks(entries)
  const sending = props.outbox.some((message) => message.problem === undefined)
  const { shared, isPinned } = useShared(props, rows, log, sending)
  return (
    <RememberedProvider value={remembered}>
      <div
        ref={log}
        role="log"
        aria-label="Conversation"
        // A message is announced when it is whole, not token by token.
        aria-busy={activityOf(transcript)?.doing === 'writing'}
        className="flex flex-col"
      >
        {blocks.map((block, at) => (
          <BlockRows
            key={block.id}
            block={block}
            sight={sight}
            shared={shared}
            isTail={at >= blocks.length - TAIL}
            isPinned={block.rows.some(isPinned)}
            atFirst={at >= blocks.length - AT_FIRST}
          />
        ))}
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
        <ElsewhereRow isElsewhere={view.transcript.prompt !== null && prompt === null} />
        <div className="pt-3 empty:hidden">
          <ActivityLine transcript={transcript} sending={sending && props.online} stopping={props.stopping} />
        </div>
        <Notifications sessionId={sessionId} view={view} />
      </div>
    </RememberedProvider>
  )
}

function useBlocks(entries: Transcript['entries']) {
  const [cutter] = useState(() => new Blocks())
  const rows = useMemo(() => withRuns(entries), [entries])
  const blocks = useMemo(() => cutter.cut(rows), [cutter, rows])
  return { rows, blocks }
}

/** Context of the rows. The same object while none of it changes. */
interface Shared {
  sessionId: string
  /** That runs. */
  promptId: string | undefined
  /** Calls that wait for an answer. */
  waiting: readonly string[]
  /** See `ToolCard`. */
  keyed: string | undefined
  marked: string | null
  /** The entry that a search has led to. */
  wanted: string | undefined
  /** The answer at the end, while nothing runs. */
  newest: string | undefined
  /** The last message, where the end of its prompt offers to resend it. */
  retry: MessageEntry | null
  /** The message that its author changes. */
  editing: string | null
  setEditing: (messageId: string | null) => void
}

function useShared(
  props: { sessionId: string | null; view: SessionView; transcript: Transcript; marked: string | null },
  rows: readonly Row[],
  log: RefObject<HTMLDivElement | null>,
  sending: boolean,
) {
  const { sessionId, view, transcript, marked } = props
  const { entries, prompt } = transcript
  const [editing, setEditing] = useState<string | null>(null)
  // A message on its way is the next try.
  const said = useMemo(() => (sending ? null : lastSaid(entries)), [entries, sending])
  const waiting = useSame(pendingApprovals(transcript).map(({ id }) => id))
  const keyed = pendingApprovals(transcript).find(asksApproval)?.id
  useFirstWaiting(sessionId, waiting, log)
  const wanted = useWantedRow(rows, log)
  useWantedBranch(view.transcript, transcript)
  const promptId = prompt?.id
  const newest = promptId === undefined ? newestAnswer(entries) : undefined
  const shared = useMemo<Shared>(
    () => ({
      sessionId: sessionId ?? '',
      promptId,
      waiting,
      keyed,
      marked,
      wanted: wanted.entry,
      newest,
      retry: said,
      editing,
      setEditing,
    }),
    [sessionId, promptId, waiting, keyed, marked, wanted.entry, newest, said, editing],
  )
  const isPinned = ({ id }: Row) =>
    id === wanted.row || id === marked || id === editing || waiting.includes(id)
  return { shared, isPinned }
}

function Notifications({ sessionId, view }: { sessionId: string | null; view: SessionView }) {
  const { chat } = useChat()
  return (
    <>
      {view.notifications.map((notification) => (
        <NotificationRow
          key={notification.id}
          notification={notification}
          onDismiss={() => sessionId !== null && chat.dismissNotification(sessionId, notification.id)}
        />
      ))}
    </>
  )
}

/** `isTail`: its rows are announced. `isPinned`: drawn wherever the reader is. */
const BlockRows = memo(function BlockRows(props: {
  block: Block
  sight: Sight
  shared: Shared
  isTail: boolean
  isPinned: boolean
  atFirst: boolean
}) {
  const { block, shared, isTail } = props
  const { rows, before, behind } = block
  const part = useRef<HTMLDivElement>(null)
  const { isShown, height } = useNear(props.sight, part, isTail || props.isPinned, props.atFirst)
  const firsts = useMemo(() => firstsOf(block), [block])
  return (
    <div
      ref={part}
      // Rows that reappear by scrolling are not announced.
      aria-live={isTail ? undefined : 'off'}
      className="flex shrink-0 flex-col"
      style={isShown ? undefined : { height: height ?? rows.length * ROW_HEIGHT }}
    >
      {isShown &&
        rows.map((row, at) => (
          <RowOf
            key={`${row.type} ${row.id}`}
            row={row}
            gap={gapOf(row, at === 0 ? before : rows[at - 1])}
            next={at === rows.length - 1 ? behind : rows[at + 1]?.type}
            first={firsts.has(row)}
            shared={shared}
          />
        ))}
    </div>
  )
})

interface RowProps {
  row: Row
  /** The row after it. */
  next: Row['type'] | undefined
  /** It is the first of its prompt. */
  first: boolean
  shared: Shared
}

const RowOf = memo(function RowOf(props: RowProps & { gap: string }) {
  const { row } = props
  if (row.type === 'end' && !hasWords(row) && row.spent.answers === 0) return null
  return (
    <div data-entry={row.id} className={props.gap}>
      <Boundary of={row} fallback={<Alert>This part of the chat couldn’t be shown.</Alert>}>
        <RowContent {...props} />
      </Boundary>
    </div>
  )
})

function RowContent({ row, shared, next, first }: RowProps) {
  return row.type === 'run' ? (
    <CallRunRow run={row} sessionId={shared.sessionId} wanted={shared.wanted} />
  ) : row.type === 'call' ? (
    <ToolCard
      call={row}
      sessionId={shared.sessionId}
      place={placeOf(row, shared.waiting)}
      keyed={row.id === (shared.marked ?? shared.keyed)}
      marked={row.id === shared.marked}
    />
  ) : row.type === 'end' ? (
    <EndRow entry={row} shared={shared} isLast={next === undefined} />
  ) : row.type === 'changes' ? (
    <ChangesLine entry={row} />
  ) : row.type === 'note' ? (
    <NoteRow entry={row} />
  ) : row.type === 'comment' ? (
    <CommentRow entry={row} />
  ) : row.role === 'user' ? (
    <UserMessage
      entry={row}
      sessionId={shared.sessionId}
      // Only of a prompt that has ended.
      ended={row.promptId === shared.promptId ? undefined : row.promptId}
      first={first}
      editing={shared.editing === row.id}
      onEditing={shared.setEditing}
    />
  ) : row.role === 'assistant' ? (
    <AssistantMessage
      entry={row}
      sessionId={shared.sessionId}
      last={isLast(next)}
      newest={row.id === shared.newest}
    />
  ) : (
    <Thought entry={row} />
  )
}

function EndRow(props: { entry: EndEntry; shared: Shared; isLast: boolean }) {
  const { sessionId, retry } = props.shared
  const { chat } = useChat()
  const { access } = useReading()
  const mayRetry = props.isLast && access !== 'watch'
  return (
    <>
      {hasWords(props.entry) && (
        <PromptEnd
          entry={props.entry}
          onRetry={retry === null || !mayRetry ? null : () => sayAgain(chat, sessionId, retry)}
        />
      )}
      {props.entry.spent.answers > 0 && <PromptSpent entry={props.entry} />}
    </>
  )
}

/**
 * Opens a chat with several waiting calls at the first, unless its address names a place, or its
 * end shows all of them.
 */
function useFirstWaiting(
  sessionId: string | null,
  waiting: readonly string[],
  log: RefObject<HTMLDivElement | null>,
): void {
  const leaveEnd = useLeaveEnd()
  const open = useEffectEvent(() => {
    const [first, second] = waiting
    if (first === undefined || second === undefined || location.hash !== '') return
    const row = log.current?.querySelector(`[data-entry="${CSS.escape(first)}"]`)
    const region = row?.closest('[data-scrolls]')
    if (row == null || region == null) return
    if (row.getBoundingClientRect().top >= region.getBoundingClientRect().top) return
    leaveEnd()
    row.scrollIntoView({ block: 'start' })
  })
  useEffect(() => {
    if (sessionId === null) return undefined
    // The region goes to its end with its first frame.
    let frame = requestAnimationFrame(() => (frame = requestAnimationFrame(() => open())))
    return () => cancelAnimationFrame(frame)
  }, [sessionId])
}

/** The same list while what is in it is the same. */
function useSame(list: readonly string[]): readonly string[] {
  const [same, setSame] = useState(list)
  if (same.length === list.length && same.every((one, at) => one === list[at])) return same
  setSame(list)
  return list
}

/** Brings what was asked for into view. Answers it, and the row that has it. */
function useWantedRow(
  rows: readonly Row[],
  log: RefObject<HTMLElement | null>,
): { row: string | undefined; entry: string | undefined } {
  const wanted = useWantedEntry()
  const leaveEnd = useLeaveEnd()
  const reached = useRef<typeof wanted>(null)
  const row = useMemo(() => rows.find((one) => wanted !== null && holds(one, wanted.id)), [rows, wanted])
  useLayoutEffect(() => {
    if (wanted === null || row === undefined || reached.current === wanted) return
    reached.current = wanted
    const found = [
      log.current?.querySelector(`[data-call-id="${CSS.escape(wanted.id)}"]`),
      log.current?.querySelector(`[data-entry="${CSS.escape(row.id)}"]`),
    ].find((element) => element instanceof HTMLElement)
    if (found === undefined) return
    leaveEnd()
    const show = (): void => found.scrollIntoView({ block: 'center' })
    show()
    // Rows rendered around it from now on have other heights than estimated.
    requestAnimationFrame(() => requestAnimationFrame(show))
    found.classList.add('found')
    found.addEventListener('animationend', () => found.classList.remove('found'), { once: true })
    found.tabIndex = -1
    found.focus({ preventScroll: true })
  }, [wanted, row, log, leaveEnd])
  return { row: row?.id, entry: wanted?.id }
}

/** Shows the branch that has what was asked for, where that is another one. */
function useWantedBranch(whole: Transcript, shown: Transcript): void {
  const wanted = useWantedEntry()
  const { choose } = useBranches()
  const reached = useRef<typeof wanted>(null)
  useEffect(() => {
    if (wanted === null || reached.current === wanted) return
    const entry = whole.entries.find(({ id }) => id === wanted.id)
    if (entry === undefined) return
    reached.current = wanted
    const promptId = promptOf(entry)
    if (promptId !== undefined && !shown.entries.includes(entry)) choose(promptId)
  }, [wanted, whole, shown, choose])
}

function holds(row: Row, id: string): boolean {
  return row.id === id || (row.type === 'run' && row.calls.some((call) => call.id === id))
}

/** The rows with which a prompt begins. */
function firstsOf({ rows, promptBefore }: Block): ReadonlySet<Row> {
  let prompt = promptBefore
  return new Set(
    rows.filter((row) => {
      const own = promptOfRow(row)
      const isFirst = own !== undefined && own !== prompt
      prompt = own ?? prompt
      return isFirst
    }),
  )
}

/** Cards of one turn stand close together; everything else has room. */
function gapOf(entry: Row, before: Row | undefined): string {
  const isCard = ({ type }: Row) => type === 'call' || type === 'run'
  if (isCard(entry) && before !== undefined && isCard(before)) return 'pt-1.5'
  if (entry.type === 'end' && !hasWords(entry)) return 'pt-1'
  return entry.type === 'message' && entry.role === 'user' ? 'pt-8' : 'pt-4'
}

/** “1 of 3”, where several wait. */
function placeOf(entry: Row, waiting: readonly string[]): string | undefined {
  const at = waiting.indexOf(entry.id)
  return at === -1 || waiting.length < 2 ? undefined : `${at + 1} of ${waiting.length}`
}

/** Something runs in another branch than the one that is shown. */
function ElsewhereRow(props: { isElsewhere: boolean }) {
  const { choose } = useBranches()
  if (!props.isElsewhere) return null
  return (
    <div role="status" className="flex flex-wrap items-center gap-x-3 gap-y-2 pt-4 text-sm text-muted">
      <span className="size-1.5 rounded-full bg-accent pulse-dot" aria-hidden />
      The agent is working in another branch of this chat.
      <Button size="sm" onClick={() => choose(null)}>
        Show it
      </Button>
    </div>
  )
}

function NotificationRow(props: { notification: ChatNotification; onDismiss: () => void }) {
  const Frame = props.notification.code === 'conflict' ? Hint : Alert
  return (
    <div className="pt-4">
      <Frame>
        <div className="flex items-start justify-between gap-3">
          <span>{props.notification.message}</span>
          <IconButton label="Dismiss" onClick={props.onDismiss} className="-my-1.5">
            <X aria-hidden />
          </IconButton>
        </div>
      </Frame>
    </div>
  )
}

/** Nothing that the agent says or does in its prompt stands behind a message. */
function isLast(next: Row['type'] | undefined): boolean {
  return next === undefined || next === 'changes' || next === 'end'
}

/** Its position is the end, apart from the prompt's end. */
function newestAnswer(entries: readonly Entry[]): string | undefined {
  const last = entries.findLast(({ type }) => type !== 'changes' && type !== 'end')
  return last?.type === 'message' && last.role === 'assistant' ? last.id : undefined
}

/** The last message, when its prompt ended in an error and it can be sent again. */
function lastSaid(entries: readonly Entry[]): MessageEntry | null {
  const last = entries.at(-1)
  if (last?.type !== 'end' || last.reason !== 'error') return null
  const said = entries.findLast((entry) => entry.type === 'message' && entry.role === 'user')
  return said?.type === 'message' ? said : null
}
