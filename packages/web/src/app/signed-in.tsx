/**
 * Everything behind the sign-in: makes this tab's chat, ties it to the browser's own signals, and
 * shows the page.
 */
import type { Me } from '@sandlot/shared/account/api'
import { Activity, lazy, Suspense, useEffect, useEffectEvent, useMemo, useRef, useState } from 'react'
import { Route, Switch, useLocation } from 'wouter'
import { useStore } from 'zustand'
import { ChatProvider, type ChatContext, useChatState } from '../state/chat-context.ts'
import { ChatPage } from '../chat/chat-page.tsx'
import { moveDraft } from '../chat/composer/drafts.ts'
import { GuestHome } from '../chat/empty-chat.tsx'
import { Layout } from './layout.tsx'
import { browserStorage, storageOfPerson, unsentStorage } from '../lib/storage.ts'
import { call } from '../net/call.ts'
import { ApiError } from '../net/http.ts'
import { discardImage, uploadImage } from '../net/images.ts'
import { registerWorker, renewPush } from '../net/push.ts'
import { Attachments } from '../state/attachments.ts'
import { removeAttached, uploadAttached } from '../state/uploads.ts'
import { Chat } from '../state/chat.ts'
import { waitingCount } from '../state/chat-state.ts'
import { notify, sound } from '../lib/notifications.ts'
import { Toasts } from '../ui/toasts.tsx'
import { newsBetween, type News } from '../state/news.ts'

// Loaded when it is opened: no chat needs it.
const SettingsPage = lazy(() => import('../settings/settings-page.tsx'))
const SnapshotPage = lazy(() => import('../chat/sharing/snapshot-page.tsx'))

/** A tick that comes this late means that the machine slept. */
const TICK_MS = 10_000
const SLEPT_MS = 30_000

/** `onStale`: what is known of the person or the model is not complete; ask again. */
export function SignedIn(props: { me: Me; onSignedOut: () => void; onStale: () => Promise<void> }) {
  const { me, onSignedOut, onStale } = props
  const [path, navigate] = useLocation()
  const { chat, attachments, unsent } = useTabChat(me, path, onSignedOut)
  useEffect(() => watchBrowser(chat), [chat])
  useEffect(() => {
    registerWorker().catch((error: unknown) =>
      console.warn('There is no page for when one is offline.', error),
    )
    renewPush().catch((error: unknown) => console.warn('Pushes could not be renewed.', error))
  }, [])
  useEffect(() => {
    attachments.start()
    return () => attachments.stop()
  }, [attachments])
  useModelName(chat, me, props.onStale)
  useNews(chat, (sessionId) => navigate(`/s/${sessionId}`))
  const context = useMemo<ChatContext>(
    () => ({ chat, attachments, unsent, me, renewMe: onStale, onSignedOut }),
    [chat, attachments, unsent, me, onStale, onSignedOut],
  )
  const section = /^\/settings(?:\/([^/]*))?(?:\/([^/]*))?$/.exec(path)
  // Settings lie over the chat that they were opened from, which is found as it was left.
  const [chatPath, setChatPath] = useState<string | null>(null)
  if (section === null && chatPath !== path) setChatPath(path)
  return (
    <ChatProvider value={context}>
      <DocumentTitle settings={section !== null} />
      <Toasts />
      <Activity mode={section === null ? 'visible' : 'hidden'}>
        <Layout>
          <ChatRoutes path={chatPath ?? '/'} isGuest={me.role === 'guest'} />
        </Layout>
      </Activity>
      {section !== null && (
        <Suspense fallback={null}>
          <SettingsPage
            section={section[1]}
            item={section[2]}
            back={chatPath ?? '/'}
            fromChat={chatPath !== null}
            onLeave={() => navigate(chatPath ?? '/')}
          />
        </Suspense>
      )}
    </ChatProvider>
  )
}

function ChatRoutes({ path, isGuest }: { path: string; isGuest: boolean }) {
  return (
    <Switch location={path}>
      <Route path="/s/:sessionId">
        {(params) => <ChatPage key={params.sessionId} sessionId={params.sessionId} />}
      </Route>
      <Route path="/snapshots/:id">
        {({ id }) => (
          <Suspense fallback={null}>
            <SnapshotPage key={id} id={id} />
          </Suspense>
        )}
      </Route>
      <Route>{isGuest ? <GuestHome /> : <ChatPage sessionId={null} />}</Route>
    </Switch>
  )
}

/** Made once a tab: the chat, its attachments, and the storage of what is not sent. */
function useTabChat(me: Me, path: string, onSignedOut: () => void) {
  const [, navigate] = useLocation()
  const latest = useRef({ path, navigate, onSignedOut })
  useEffect(() => {
    latest.current = { path, navigate, onSignedOut }
  })
  const [unsent] = useState(() => unsentStorage(browserStorage('local'), browserStorage('session'), me.id))
  const [attachments] = useState(
    () =>
      new Attachments({
        storageOf: unsent,
        upload: uploadImage,
        discard: discardImage,
        uploadFile: uploadAttached,
        removeFile: removeAttached,
      }),
  )
  const [chat] = useState(
    () =>
      new Chat({
        url: `${location.origin.replace(/^http/, 'ws')}/ws`,
        storage: storageOfPerson(browserStorage('session'), me.id),
        fetchSessions: (before) => call('listChats', { query: { archived: false, before } }),
        fetchSession: (id) => call('getChat', { params: { id } }),
        onRefused: () => {
          call('getMe').catch((error: unknown) => {
            if (error instanceof ApiError && error.code === 'unauthenticated') latest.current.onSignedOut()
          })
        },
        // Only from the new chat: a page opened in the meantime stays.
        onSessionStarted: (sessionId) => {
          moveDraft(unsent, sessionId)
          attachments.started(sessionId)
          if (latest.current.path === '/') latest.current.navigate(`/s/${sessionId}`, { replace: true })
        },
        schedule: soon,
      }),
  )
  return { chat, attachments, unsent }
}

/**
 * Connect, and follow what the browser knows of network, visibility and sleep. Answers how to stop.
 */
function watchBrowser(chat: Chat): () => void {
  const controller = new AbortController()
  const { signal } = controller
  chat.start()
  window.addEventListener('online', () => chat.wake(), { signal })
  window.addEventListener('offline', () => chat.goOffline(), { signal })
  const reportVisibility = (): void => chat.setVisible(document.visibilityState === 'visible')
  reportVisibility()
  document.addEventListener('visibilitychange', reportVisibility, { signal })
  document.addEventListener('visibilitychange', () => document.visibilityState === 'visible' && chat.wake(), {
    signal,
  })
  let last = Date.now()
  const ticks = setInterval(() => {
    const now = Date.now()
    if (now - last > SLEPT_MS) chat.renew()
    last = now
  }, TICK_MS)
  return () => {
    controller.abort()
    clearInterval(ticks)
    chat.stop()
  }
}

/**
 * A service that has not reached its agent yet cannot name the model. Ask again when something has
 * come from there.
 */
function useModelName(chat: Chat, me: Me, ask: () => Promise<void>): void {
  const fresh = useStore(chat.store, (state) =>
    Object.values(state.views).some((view) => view.sync === 'fresh'),
  )
  const unknown = me.model.name === 'unknown'
  useEffect(() => {
    if (fresh && unknown) void ask()
  }, [fresh, unknown, ask])
}

/** The tab says when an approval waits, in any session: that there is one, not what it is about. */
function DocumentTitle(props: { settings: boolean }) {
  const { settings } = props
  const waiting = useChatState(waitingCount)
  const title = useChatState((state) => {
    const summary = state.sessions?.find((known) => known.sessionId === state.activeId)
    return summary?.title ?? null
  })
  useEffect(() => {
    const page = settings ? 'Settings' : title
    const name = page === null ? 'Sandlot' : `${page} · Sandlot`
    document.title = waiting > 0 ? `(${waiting}) Approval needed · ${name}` : name
  }, [waiting, title, settings])
  return null
}

/** A browser notification for a reader who looks elsewhere: a chat waits for them or is done. */
const WORDS: Record<News['what'], string> = { waiting: 'Sandlot needs you', done: 'Sandlot is done' }

/** `onOpen`: the person wants to see that chat. */
function useNews(chat: Chat, onOpen: (sessionId: string) => void): void {
  const open = useEffectEvent(onOpen)
  useEffect(
    () =>
      chat.store.subscribe((state, before) => {
        if (document.hasFocus()) return
        const news = newsBetween(before.sessions, state.sessions)
        for (const { sessionId, title, what } of news)
          notify(WORDS[what], { body: title, tag: sessionId, onClick: () => open(sessionId) })
        if (news.length > 0) sound()
      }),
    [chat],
  )
}

/**
 * Hidden pages get no animation frames, but a title has to change and an answer has to be there
 * when one comes back.
 */
const HIDDEN_MS = 200

/** Before the next paint; on a hidden page, soon. */
function soon(work: () => void): void {
  if (document.visibilityState === 'hidden') setTimeout(work, HIDDEN_MS)
  else requestAnimationFrame(() => work())
}
