import { pendingApprovals } from '@sandlot/shared/transcript/activity'
import { type Mode, lowerMode } from '@sandlot/shared/chat/mode'
import { Eye, Globe, SearchX, UserX, X } from 'lucide-react'
import { lazy, Suspense, useEffect, useEffectEvent, useMemo, useRef, useState } from 'react'
import type { Me } from '@sandlot/shared/account/api'
import type { Author } from '@sandlot/shared/chat/shares'
import { useLocation } from 'wouter'
import type { QueuedEntry } from '@sandlot/shared/transcript/entries'
import { branchShown } from '@sandlot/shared/transcript/transcript'
import { messageOf } from '@sandlot/shared/base/errors'
import { newId } from '@sandlot/shared/base/ids'
import type { SendOptions } from '../state/chat.ts'
import { isBusy, modeOf } from '../state/chat-state.ts'
import type { PendingMessage } from '../state/outbox.ts'
import { waitingModel } from '../state/waiting-frames.ts'
import { Button, IconButton } from '../ui/button.tsx'
import { PersonMark } from '../ui/person-mark.tsx'
import { Revealed } from '../ui/revealed.tsx'
import { loadPopups } from '../ui/on-demand.tsx'
import { Spinner } from '../ui/spinner.tsx'
import { ApprovalBar } from './approvals/approval-bar.tsx'
import { useChat, useChatState, useSettledView } from '../state/chat-context.ts'
import { BudgetWarning, useBudgets } from './composer/budget-warning.tsx'
import { Composer, type ComposerHandle } from './composer/composer.tsx'
import { ContextGauge } from './composer/context-gauge.tsx'
import { DemoBadge } from './demo-note.tsx'
import { EmptyChat } from './empty-chat.tsx'
import { aboutModel, changeOf, hasChoice, modelOf, type ModelChoice } from '../state/model-choice.ts'
import { ModelMenu } from './composer/model-menu.tsx'
import { PlanPanel } from './calls/plan-panel.tsx'
import { Queued, RefusedMessages } from './composer/queued.tsx'
import { useShownBranch } from './transcript/branches.ts'
import type { ScrollHandle } from './transcript/scroller.tsx'
import { useApprovals } from './approvals/use-approvals.ts'
import { withAttachedFiles } from './attached-files.ts'
import { useAttachments } from './composer/use-attachments.ts'
import { useDraft } from './composer/drafts.ts'
import { useTakeHanded } from '../state/composer-text.ts'
import { mentionsIn } from './sharing/mentions.ts'
import { MODE_EFFECTS } from '../state/mode-effects.ts'
import { ReadingProvider, useMentionable, useReadingOf } from '../state/reading.ts'
import { DropZone } from './drop-zone.tsx'
import { useGlobalKeys } from './use-global-keys.ts'
import { useWorkspace } from '../state/use-workspace.ts'
import { quotePath } from '@sandlot/shared/base/quoted-path'
import { useNewInProject, useSeen } from '../state/chat-hooks.tsx'
import { readAgain } from '../net/images.ts'
import { call } from '../net/call.ts'

const loadConversation = () => import('./transcript/conversation.tsx')
const Conversation = lazy(loadConversation)

/** After this, what a person opens next does not compete with what they look at. */
const AT_REST_MS = 2_000

/** One session, or (null) the chat that does not exist yet. */
export function ChatPage(props: { sessionId: string | null }) {
  const { sessionId } = props
  const { chat, me } = useChat()
  const view = useSettledView(sessionId)
  const outbox = useChatState((state) => state.outbox)
  const online = useChatState((state) => state.connection.status === 'open')
  const busy = useChatState((state) => isBusy(state, sessionId))
  const knownMode = useChatState((state) => (sessionId === null ? null : modeOf(state, sessionId)))
  const [chosenMode, setNewMode] = useState<Mode>(me.defaultMode)
  const newMode = lowerMode(chosenMode, me.modeCeiling)
  const [draft, setDraft] = useDraft(sessionId)
  const [drawn, setDrawn] = useState(false)
  const [newModel, setNewModel] = useState<ModelChoice>({ model: me.model.name, thoughtLevel: null })
  const inProject = useNewInProject(sessionId, { mode: newMode, setMode: setNewMode, setModel: setNewModel })
  useSeen(sessionId)
  const unsent = useChatState((state) =>
    sessionId === null ? undefined : waitingModel(state.waiting, sessionId),
  )
  const chosen = sessionId === null ? newModel : modelOf(view.transcript, me, unsent)
  const seesImages = (aboutModel(me, chosen.model) ?? me.model).images !== false
  const reading = useReadingOf(sessionId)
  const attachments = useAttachments(sessionId, {
    images: seesImages ? null : `${chosen.model} can’t read images. Send your message without them.`,
    files: filesRefusal(me.role, reading.owner),
  })
  const composer = useRef<ComposerHandle>(null)
  const scroller = useRef<ScrollHandle>(null)

  useEffect(() => {
    chat.show(sessionId)
    if (!isTouch()) composer.current?.focus()
  }, [chat, sessionId])

  useTakeHanded((text) => {
    setDraft([draft, text].filter((part) => part !== '').join('\n\n'))
    composer.current?.focus()
  })
  useWithdrawnMessages(sessionId, view.back.got, {
    text: draft,
    onText: setDraft,
    onImages: (files) => void attachments.add(files),
  })

  const { owner, access, mayApprove, modeCeiling, together } = reading
  const budgets = useBudgets(view.transcript.prompt?.id)
  const [comment, setComment] = useState(false)
  const commenting = together && access !== 'watch' && comment
  const mentionable = useMentionable(sessionId, reading, commenting)

  const [ours, refused] = useMemo(() => shownAndRefused(outbox, sessionId), [outbox, sessionId])
  const { transcript } = view
  const { path, follows, branches } = useShownBranch(sessionId, transcript, ours)
  const shown = useMemo(() => branchShown(transcript, path), [transcript, path])
  const waiting = useMemo(() => (mayApprove ? pendingApprovals(transcript) : []), [transcript, mayApprove])
  const empty = transcript.entries.length === 0 && ours.length === 0
  const stopping = view.stopping || ours.some((message) => message.stop === true)
  const lastSaid = useMemo(() => lastUserText(shown.entries), [shown.entries])

  const say = (text: string, images: NonNullable<SendOptions['images']>) =>
    chat.send(
      sessionId,
      text,
      sessionId === null ? { ...inProject, ...(hasChoice(me) ? newModel : {}), images } : { images, follows },
    )
  const sayToPeople = async (session: string, text: string) => {
    const mentions = mentionsIn(text, mentionable)
    try {
      await call('comment', { params: { id: session }, body: { commentId: newId('r'), text, mentions } })
    } catch (error) {
      composer.current?.giveBack(text)
      chat.warn(session, `Couldn’t send your comment. ${messageOf(error)}`)
    }
  }
  const send = (text: string) => {
    if (commenting && sessionId !== null) {
      void sayToPeople(sessionId, text)
      setDraft('')
      scroller.current?.toBottom()
      return
    }
    const there = attachments.items.filter((item) => item.state === 'there')
    say(
      withAttachedFiles(
        text,
        there.flatMap((item) => ('path' in item ? [item.path] : [])),
      ),
      there.flatMap((item) => ('id' in item ? [item] : [])),
    )
    setDraft('')
    attachments.clear()
    scroller.current?.toBottom()
  }
  const approvals = useApprovals(sessionId, waiting, () => {
    if (!isTouch()) composer.current?.focus()
  })
  useGlobalKeys((shortcut) => {
    if (shortcut === 'stop' && busy && !stopping && access !== 'watch') {
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
  useEffect(() => (drawn ? loadLater() : undefined), [drawn])

  if (view.missing) return <NoSuchSession unsharedBy={view.unsharedBy} />
  return (
    <ReadingProvider value={reading}>
      <DropZone
        sessionId={sessionId}
        onlyImages={attachments.refusals.files !== null}
        onFiles={access === 'watch' || commenting ? ignoreFiles : (files) => void attachments.add(files)}
        onFolders={(folders) => {
          const lines = folders.map((folder) => quotePath(`/workspace/${folder}`))
          setDraft([draft, ...lines].filter((text) => text.trim() !== '').join('\n'))
        }}
      >
        {loading ? (
          <Opening />
        ) : empty ? (
          <div className="min-h-0 flex-1 overflow-y-auto">
            <div className="mx-auto flex min-h-full w-full max-w-[48rem] items-center px-4 sm:px-6">
              <EmptyChat
                // Typed text and attachments stay in place.
                onIdea={(text) => say(text, [])}
              />
            </div>
          </div>
        ) : (
          <Suspense fallback={<Opening />}>
            <Conversation
              scroller={scroller}
              people={transcript.people}
              branches={branches}
              sessionId={sessionId}
              path={path}
              outbox={ours}
              online={online}
              stopping={stopping}
              marked={approvals.marked}
            />
          </Suspense>
        )}
        <p role="status" data-testid="approval-status" className="sr-only">
          {approvals.said}
        </p>
        {access === 'watch' && owner !== null ? (
          <Watching owner={owner} />
        ) : (
          <Composer
            ref={composer}
            text={draft}
            onText={(text) => {
              setDraft(text)
              if (together && sessionId !== null && text !== '') chat.typing(sessionId)
            }}
            onSend={send}
            busy={busy}
            stopping={stopping}
            onStop={() => chat.stopPrompt(sessionId)}
            // Only the owner's message may join a running prompt.
            placeholder={owner !== null && busy ? 'Sends when the current task ends…' : undefined}
            mode={
              owner !== null
                ? null
                : lowerMode(sessionId === null ? newMode : (knownMode ?? me.defaultMode), me.modeCeiling)
            }
            onMode={(mode) => (sessionId === null ? setNewMode(mode) : chat.setMode(sessionId, mode))}
            lastSaid={lastSaid}
            comments={
              together
                ? { on: commenting, onToggle: () => setComment(!comment), people: mentionable }
                : undefined
            }
            attachments={attachments}
            note={
              <>
                {owner !== null ? (
                  <InSandboxOf owner={owner} ceiling={modeCeiling} />
                ) : me.model.demo ? (
                  <DemoBadge />
                ) : hasChoice(me) ? (
                  <ModelMenu
                    me={me}
                    choice={chosen}
                    onChange={(choice) =>
                      sessionId === null
                        ? setNewModel(choice)
                        : chat.setModel(sessionId, changeOf(chosen, choice))
                    }
                  />
                ) : (
                  <span className="truncate max-sm:hidden">{me.model.name}</span>
                )}
                <span className="ml-auto flex shrink-0 items-center">
                  <ContextGauge
                    context={transcript.context}
                    spent={transcript.spent.chat}
                    instructionFiles={transcript.instructionFiles}
                    budgets={budgets}
                    onCompact={busy || sessionId === null ? null : () => say('/compact', [])}
                  />
                </span>
              </>
            }
            above={
              <>
                <BudgetWarning budgets={budgets} />
                <ApprovalBar waiting={waiting} onAnswer={approvals.answerAll} />
                <RefusedMessages messages={refused} mode={newMode} />
                {owner === null && <PortsCard sessionId={sessionId} />}
                <PlanPanel plan={shown.plan} running={shown.prompt !== null} />
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
        )}
      </DropZone>
    </ReadingProvider>
  )
}

/** Loads what the composer did not need. Returns how to cancel it. */
function loadLater(): () => void {
  void loadConversation()
  const timer = setTimeout(() => void loadPopups(), AT_REST_MS)
  return () => clearTimeout(timer)
}

/** Stays in its place when something comes above the composer. */
function Opening() {
  return (
    <div
      role="status"
      className="flex flex-1 items-start justify-center gap-2.5 pt-[38vh] text-sm text-muted"
    >
      <Spinner /> Loading…
    </div>
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

/** `unsharedBy`: whose it was, when it was shared with the reader. */
function NoSuchSession({ unsharedBy }: { unsharedBy: Author | null }) {
  const [, navigate] = useLocation()
  const Icon = unsharedBy === null ? SearchX : UserX
  return (
    <div
      role="status"
      data-testid="missing"
      className="flex flex-1 flex-col items-center justify-center gap-3 px-6 pb-24 text-center"
    >
      <Icon className="size-7 text-faint" aria-hidden />
      <h1 className="text-lg font-semibold">
        {unsharedBy === null ? 'Chat not found' : 'This chat is no longer shared with you'}
      </h1>
      <p className="max-w-sm text-sm text-muted">
        {unsharedBy === null ? (
          'It was deleted, or you don’t have access.'
        ) : (
          <>
            <Revealed text={unsharedBy.name} /> stopped sharing it, or it expired or was deleted. Ask them if
            you still need it.
          </>
        )}
      </p>
      <Button className="mt-2" onClick={() => navigate('/')}>
        Start a new chat
      </Button>
    </div>
  )
}

/** In place of the composer of who may only watch. */
function Watching({ owner }: { owner: Author }) {
  return (
    <div className="mx-auto w-full max-w-[48rem] px-3 pb-3 sm:px-6 sm:pb-5">
      <p
        data-testid="watching"
        className="flex items-center gap-2.5 rounded-2xl border border-line bg-panel px-4 py-3 text-sm text-muted"
      >
        <Eye className="size-4 shrink-0 text-faint" aria-hidden />
        <span className="min-w-0 [overflow-wrap:anywhere]">
          You’re watching this chat of <Revealed text={owner.name} />, who can let you take part.
        </span>
      </p>
    </div>
  )
}

/** The sandbox in which this prompt runs. */
function InSandboxOf({ owner, ceiling }: { owner: Author; ceiling: Mode | null }) {
  return (
    <span
      data-testid="in-sandbox-of"
      title={`Your messages run in ${owner.name}’s sandbox, under their rules.`}
      className="flex min-w-0 items-center gap-1.5"
    >
      <PersonMark {...owner} className="size-4.5 text-[0.5rem]" />
      <span className="truncate">
        Runs in the sandbox of <Revealed text={owner.name} />
        {ceiling !== null && `; ${MODE_EFFECTS[ceiling]}`}
      </span>
    </span>
  )
}

const ignoreFiles = () => undefined

/** Why no other files than images can be attached; null where they can. */
function filesRefusal(role: Me['role'], owner: Author | null): string | null {
  if (role === 'guest') return 'Guests can attach images only.'
  return owner === null
    ? null
    : `Only images can be attached here: this chat’s files are in ${owner.name}’s workspace.`
}

function lastUserText(
  entries: readonly { type: string; role?: string; text?: string | undefined }[],
): string | null {
  return entries.findLast((entry) => entry.type === 'message' && entry.role === 'user')?.text ?? null
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

const NO_PORTS: readonly number[] = []

/** Says that an app has begun to listen in the person's sandbox, until it is opened or put away. */
function PortsCard({ sessionId }: { sessionId: string | null }) {
  const ports = useChatState(({ views }) => views[sessionId ?? '']?.transcript.ports ?? NO_PORTS)
  const [seen, setSeen] = useState<readonly number[]>([])
  const fresh = ports.filter((port) => !seen.includes(port))
  // A port that is closed and opened again is new.
  if (seen.some((port) => !ports.includes(port))) setSeen(seen.filter((port) => ports.includes(port)))
  return (
    <div role="status">
      {fresh.length > 0 && (
        <div className="flex items-center gap-2.5 border-b border-line py-1.5 pr-1.5 pl-4 text-sm">
          <Globe className="size-4 shrink-0 text-accent" aria-hidden />
          <p className="min-w-0 flex-1">
            An app is running in your sandbox on {fresh.length === 1 ? 'port' : 'ports'}{' '}
            <span className="font-mono">{fresh.join(', ')}</span>
          </p>
          <Button
            size="sm"
            onClick={() => {
              setSeen(ports)
              useWorkspace.getState().open('app')
            }}
          >
            Show it
          </Button>
          <IconButton label="Dismiss" onClick={() => setSeen(ports)}>
            <X aria-hidden />
          </IconButton>
        </div>
      )}
    </div>
  )
}
