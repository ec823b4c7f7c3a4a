import { pendingApprovals } from '@sandlot/shared/transcript/activity'
import type { Mode } from '@sandlot/shared/mode'
import { ArrowDown, ImagePlus, SearchX } from 'lucide-react'
import {
  type DragEvent,
  type ReactNode,
  type Ref,
  useEffect,
  useEffectEvent,
  useImperativeHandle,
  useLayoutEffect,
  useMemo,
  useRef,
  useState,
} from 'react'
import { useLocation } from 'wouter'
import { useStickToBottom } from 'use-stick-to-bottom'
import type { QueuedEntry } from '@sandlot/shared/transcript/entries'
import { messageOf } from '@sandlot/shared/errors'
import type { SendOptions } from '../state/chat.ts'
import { EMPTY_VIEW, isBusy, modeOf } from '../state/chat-state.ts'
import type { PendingMessage } from '../state/outbox.ts'
import { waitingModel } from '../state/waiting-frames.ts'
import { Button } from '../ui/button.tsx'
import { Spinner } from '../ui/spinner.tsx'
import { ApprovalBar } from './approvals/approval-bar.tsx'
import { useChat, useChatState } from './chat-context.ts'
import { Composer, type ComposerHandle } from './composer/composer.tsx'
import { DemoBadge } from './demo-note.tsx'
import { EmptyChat } from './empty-chat.tsx'
import { aboutModel, changeOf, hasChoice, modelOf, type ModelChoice } from './composer/model-choice.ts'
import { ModelMenu } from './composer/model-menu.tsx'
import { PlanPanel } from './calls/plan-panel.tsx'
import { Queued, RefusedMessages } from './composer/queued.tsx'
import { TranscriptView } from './transcript/transcript-view.tsx'
import { useApprovals } from './approvals/use-approvals.ts'
import { useAttachments } from './composer/use-attachments.ts'
import { useDraft } from './composer/drafts.ts'
import { useGlobalKeys } from './use-global-keys.ts'
import { readAgain } from '../net/images.ts'

/** One session, or (null) the chat that does not exist yet. */
export function ChatPage(props: { sessionId: string | null }) {
  const { sessionId } = props
  const { chat, me } = useChat()
  const view =
    useChatState((state) => (sessionId === null ? undefined : state.views[sessionId])) ?? EMPTY_VIEW
  const outbox = useChatState((state) => state.outbox)
  const online = useChatState((state) => state.connection.status === 'open')
  const busy = useChatState((state) => isBusy(state, sessionId))
  const knownMode = useChatState((state) => (sessionId === null ? null : modeOf(state, sessionId)))
  const [newMode, setNewMode] = useState<Mode>(me.defaultMode)
  const [draft, setDraft] = useDraft(sessionId)
  const [drawn, setDrawn] = useState(false)
  const [newModel, setNewModel] = useState<ModelChoice>({ model: me.model.name, thoughtLevel: null })
  const untold = useChatState((state) =>
    sessionId === null ? undefined : waitingModel(state.waiting, sessionId),
  )
  const chosen = sessionId === null ? newModel : modelOf(view.transcript, me, untold)
  const seesImages = (aboutModel(me, chosen.model) ?? me.model).images !== false
  const attachments = useAttachments(
    sessionId,
    seesImages ? null : `${chosen.model} does not see images; ask without them.`,
  )
  const composer = useRef<ComposerHandle>(null)
  const scroller = useRef<ScrollHandle>(null)

  useEffect(() => {
    chat.show(sessionId)
    if (!isTouch()) composer.current?.focus()
  }, [chat, sessionId])

  useWithdrawnMessages(sessionId, view.back.got, {
    text: draft,
    onText: setDraft,
    onImages: attachments.add,
  })

  const { transcript } = view
  const [ours, refused] = useMemo(() => shownAndRefused(outbox, sessionId), [outbox, sessionId])
  const waiting = useMemo(() => pendingApprovals(transcript), [transcript])
  const empty = transcript.entries.length === 0 && ours.length === 0
  const stopping = view.stopping || ours.some((message) => message.stop === true)
  const lastSaid = useMemo(() => lastUserText(transcript.entries), [transcript.entries])

  const say = (text: string, images: NonNullable<SendOptions['images']>) =>
    chat.send(sessionId, text, { mode: newMode, ...(hasChoice(me) ? newModel : {}), images })
  const send = (text: string) => {
    say(
      text,
      attachments.items.flatMap((item) => (item.state === 'there' ? [item] : [])),
    )
    setDraft('')
    attachments.clear()
    scroller.current?.toBottom()
  }
  const approvals = useApprovals(sessionId, waiting, () => {
    if (!isTouch()) composer.current?.focus()
  })
  useGlobalKeys((shortcut) => {
    if (shortcut === 'stop' && busy && !stopping) {
      chat.stopPrompt(sessionId)
      return true
    }
    if (shortcut === 'focus-composer') {
      composer.current?.focus()
      return true
    }
    if (shortcut === 'allow') return approvals.answerOne('allow_once')
    if (shortcut === 'reject') return approvals.answerOne('reject_once')
    if (shortcut === 'allow-all') return approvals.answerAll('allow_once')
    return shortcut === 'reject-all' && approvals.answerAll('reject_once')
  })

  // A history that comes in pieces is drawn once it is whole. What stands there already stays.
  const loading =
    sessionId !== null && !drawn && ours.length === 0 && view.sync === 'loading' && view.chasedFrom === null
  if (!loading && !drawn) setDrawn(true)

  if (view.missing) return <NoSuchSession />
  return (
    <DropZone sessionId={sessionId} onFiles={attachments.add}>
      {loading ? (
        <div role="status" className="flex flex-1 items-center justify-center gap-2.5 text-sm text-muted">
          <Spinner /> Opening the conversation…
        </div>
      ) : empty ? (
        <div className="min-h-0 flex-1 overflow-y-auto">
          <div className="mx-auto flex min-h-full w-full max-w-[48rem] items-center px-4 sm:px-6">
            <EmptyChat
              // What is typed or attached stays where it is.
              onIdea={(text) => say(text, [])}
            />
          </div>
        </div>
      ) : (
        <Scroller ref={scroller}>
          <TranscriptView
            sessionId={sessionId}
            view={view}
            outbox={ours}
            online={online}
            stopping={stopping}
            marked={approvals.marked}
          />
        </Scroller>
      )}
      <p role="status" data-testid="approval-status" className="sr-only">
        {approvals.said}
      </p>
      <Composer
        ref={composer}
        text={draft}
        onText={setDraft}
        onSend={send}
        busy={busy}
        stopping={stopping}
        onStop={() => chat.stopPrompt(sessionId)}
        mode={sessionId === null ? newMode : (knownMode ?? me.defaultMode)}
        onMode={(mode) => (sessionId === null ? setNewMode(mode) : chat.setMode(sessionId, mode))}
        lastSaid={lastSaid}
        attachments={attachments}
        takesImages={seesImages}
        note={
          me.model.demo ? (
            <DemoBadge />
          ) : hasChoice(me) ? (
            <ModelMenu
              me={me}
              choice={chosen}
              onChange={(choice) =>
                sessionId === null ? setNewModel(choice) : chat.setModel(sessionId, changeOf(chosen, choice))
              }
            />
          ) : (
            <span className="truncate max-sm:hidden">{me.model.name}</span>
          )
        }
        above={
          <>
            <ApprovalBar waiting={waiting} onAnswer={approvals.answerAll} />
            <RefusedMessages messages={refused} />
            <PlanPanel plan={transcript.plan} running={transcript.prompt !== null} />
            {sessionId !== null && (
              <Queued
                messages={transcript.queued}
                asked={view.back.asked}
                running={transcript.prompt !== null}
                onTakeBack={(messageId) => {
                  chat.takeBack(sessionId, messageId)
                  // The button goes with its message.
                  if (!isTouch()) composer.current?.focus()
                }}
              />
            )}
          </>
        }
      />
    </DropZone>
  )
}

/**
 * A first message that was refused has no chat: it waits above the composer, and the new chat stays
 * free for another.
 */
function shownAndRefused(
  outbox: readonly PendingMessage[],
  sessionId: string | null,
): [PendingMessage[], PendingMessage[]] {
  const own = outbox.filter((message) => message.sessionId === sessionId)
  if (sessionId !== null) return [own, []]
  return [
    own.filter(({ problem }) => problem === undefined),
    own.filter(({ problem }) => problem !== undefined),
  ]
}

/** There the keyboard would cover what the user came to read. */
const isTouch = () => matchMedia('(pointer: coarse)').matches

function NoSuchSession() {
  const [, navigate] = useLocation()
  return (
    <div className="flex flex-1 flex-col items-center justify-center gap-3 px-6 pb-24 text-center">
      <SearchX className="size-7 text-faint" aria-hidden />
      <h1 className="text-lg font-semibold">There is no such chat</h1>
      <p className="max-w-sm text-sm text-muted">It was deleted, or it belongs to somebody else.</p>
      <Button className="mt-2" onClick={() => navigate('/')}>
        Start a new chat
      </Button>
    </div>
  )
}

function lastUserText(
  entries: readonly { type: string; role?: string; text?: string | undefined }[],
): string | null {
  return entries.findLast((entry) => entry.type === 'message' && entry.role === 'user')?.text ?? null
}

/** Files may be dropped anywhere on what is inside. */
function DropZone(props: {
  sessionId: string | null
  onFiles: (files: readonly File[]) => void
  children: ReactNode
}) {
  const [over, setOver] = useState(false)
  // Each element inside is entered and left on its own.
  const depth = useRef(0)
  const move = (event: DragEvent, by: number) => {
    if (!event.dataTransfer.types.includes('Files')) return
    event.preventDefault()
    depth.current = Math.max(0, depth.current + by)
    setOver(depth.current > 0)
  }
  return (
    <div
      data-session-page={props.sessionId ?? 'new'}
      className="relative flex min-h-0 flex-1 flex-col"
      onDragEnter={(event) => move(event, 1)}
      onDragOver={(event) => move(event, 0)}
      onDragLeave={(event) => move(event, -1)}
      onDrop={(event) => {
        move(event, -depth.current)
        const files = [...event.dataTransfer.files]
        if (files.length > 0) props.onFiles(files)
      }}
    >
      {props.children}
      {over && (
        <div
          aria-hidden
          className="pointer-events-none absolute inset-2 z-20 flex flex-col items-center justify-center gap-2 rounded-2xl border-2 border-dashed border-accent bg-canvas/85 text-base font-medium"
        >
          <ImagePlus className="size-7 text-accent" /> Drop images to attach them
        </div>
      )}
    </div>
  )
}

interface ScrollHandle {
  toBottom(): void
}

/**
 * The conversation's scrolling region: stays at its end while it grows, until the reader scrolls
 * up.
 */
function Scroller(props: { children: ReactNode; ref?: Ref<ScrollHandle> }) {
  const scroll = useStickToBottom({ initial: 'instant', resize: 'instant' })
  // The hook scrolls with its first frame, which is after the first that is painted. Who comes back
  // from the settings finds the place that was left.
  useLayoutEffect(() => {
    const region = scroll.scrollRef.current
    if (region !== null && scroll.state.isAtBottom) region.scrollTop = region.scrollHeight
  }, [scroll.scrollRef, scroll.state])
  useImperativeHandle(props.ref, () => ({ toBottom: () => void scroll.scrollToBottom('instant') }), [scroll])
  return (
    <div className="relative min-h-0 flex-1">
      {/* Focusable, so that the keyboard can scroll it. */}
      <div
        ref={scroll.scrollRef}
        className="h-full overflow-y-auto overscroll-contain focus-visible:-outline-offset-2"
        data-scrolls
        tabIndex={0}
        role="group"
        aria-label="Messages"
      >
        <div ref={scroll.contentRef} className="mx-auto w-full max-w-[48rem] px-4 pb-8 sm:px-6">
          {props.children}
        </div>
      </div>
      <div className="pointer-events-none absolute inset-x-0 top-0 h-4 bg-linear-to-b from-canvas to-transparent" />
      <div className="pointer-events-none absolute inset-x-0 bottom-0 h-6 bg-linear-to-t from-canvas to-transparent" />
      {!scroll.isAtBottom && (
        <Button
          size="sm"
          onClick={() => void scroll.scrollToBottom()}
          className="absolute bottom-4 left-1/2 -translate-x-1/2 rounded-full px-3 shadow-2"
        >
          <ArrowDown className="size-3.5" aria-hidden /> Jump to latest
        </Button>
      )}
    </div>
  )
}

/**
 * Give what was taken back to the composer, to be changed and sent again: behind what is being
 * written there, after a blank line, so that nothing of either is lost. Of its images those that
 * fit; the composer says so when some do not.
 */
function useWithdrawnMessages(
  sessionId: string | null,
  got: readonly QueuedEntry[],
  composer: { text: string; onText: (text: string) => void; onImages: (files: readonly File[]) => void },
): void {
  const { chat } = useChat()
  const takeOver = useEffectEvent(async (session: string) => {
    const messages = chat.takeGot(session)
    if (messages.length === 0) return
    const texts = [composer.text, ...messages.map((message) => message.text)]
    composer.onText(texts.filter((text) => text.trim() !== '').join('\n\n'))
    const files: File[] = []
    for (const { images } of messages) {
      try {
        files.push(...(await readAgain(images)))
      } catch (error) {
        chat.warn(session, messageOf(error))
      }
    }
    // All at once: what is said of those that do not fit stays until the next are added.
    if (files.length > 0) composer.onImages(files)
  })
  useEffect(() => {
    if (sessionId !== null && got.length > 0) void takeOver(sessionId)
  }, [sessionId, got])
}
