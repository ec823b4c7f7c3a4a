import { pendingApprovals } from '@sandlot/shared/activity'
import type { Mode } from '@sandlot/shared/mode'
import { SearchX } from 'lucide-react'
import { useEffect, useMemo, useRef, useState } from 'react'
import { useLocation } from 'wouter'
import type { SendOptions } from '../state/chat.ts'
import { EMPTY_VIEW, isBusy, modeOf } from '../state/chat-state.ts'
import type { PendingMessage } from '../state/outbox.ts'
import { waitingModel } from '../state/waiting-frames.ts'
import { Button } from '../ui/button.tsx'
import { Spinner } from '../ui/spinner.tsx'
import { type ScrollHandle, Scroller } from './scroller.tsx'
import { ApprovalBar } from './approval-bar.tsx'
import { useChat, useChatState } from './chat-context.ts'
import { Composer, type ComposerHandle } from './composer.tsx'
import { DemoBadge } from './demo-note.tsx'
import { EmptyChat } from './empty-chat.tsx'
import { type ModelChoice, aboutModel, changeOf, hasChoice, modelOf } from './model-choice.ts'
import { ModelMenu } from './model-menu.tsx'
import { PlanPanel } from './plan-panel.tsx'
import { Queued } from './queued.tsx'
import { RefusedMessages } from './refused-messages.tsx'
import { TranscriptView } from './transcript-view.tsx'
import { useApprovals } from './use-approvals.ts'
import { useAttachments } from './use-attachments.ts'
import { DropZone } from './drop-zone.tsx'
import { useDraft } from './drafts.ts'
import { useGotBack } from './use-got-back.ts'
import { useGlobalKeys } from './use-global-keys.ts'

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

  useGotBack(sessionId, view.back.got, {
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

/** A first message that was refused has no chat: it waits above the composer, and the new chat stays free for another. */
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
