/** Render components of the signed-in page as static markup, without a browser: their words, not their look. */
import { emptyTranscript, foldTranscript, type Transcript } from '@sandlot/shared/transcript/transcript'
import { createElement, type ReactElement } from 'react'
import { renderToStaticMarkup } from 'react-dom/server'
import { Router } from 'wouter'
import { type ChatContext, ChatProvider } from '../../src/state/chat-context.ts'
import { memoryStorage } from '../../src/lib/storage.ts'
import { Attachments } from '../../src/state/attachments.ts'
import { Chat } from '../../src/state/chat.ts'
import type { SessionLog } from '../fixture/session-log.ts'

const storage = memoryStorage()
const asksNobody = (): Promise<never> => Promise.reject(new Error('this page has no service'))

/** The context of a page that has not connected yet. */
const CONTEXT: ChatContext = {
  chat: new Chat({
    url: 'ws://127.0.0.1/ws',
    storage,
    fetchSessions: asksNobody,
    fetchSession: asksNobody,
    onRefused: () => undefined,
    onSessionStarted: () => undefined,
    schedule: (work) => work(),
  }),
  attachments: new Attachments({
    storageOf: () => storage,
    upload: asksNobody,
    discard: asksNobody,
    uploadFile: asksNobody,
    removeFile: asksNobody,
  }),
  unsent: () => storage,
  me: {
    id: 'u_ada',
    name: 'Ada Lovelace',
    email: 'ada@example.org',
    role: 'admin',
    model: { name: 'qwen3-vl', demo: false, images: true },
    defaultMode: 'auto-edit',
  },
  renewMe: () => Promise.resolve(),
  onSignedOut: () => undefined,
}

/** Words of a component, in one line. */
export function wordsOf(element: ReactElement): string {
  const page = createElement(ChatProvider, { value: CONTEXT }, element)
  return renderToStaticMarkup(createElement(Router, { ssrPath: '/', children: page }))
    .replaceAll(/<[^>]*>/g, ' ')
    .replaceAll(/\s+/g, ' ')
    .trim()
}

/** The transcript of a whole log. */
export function transcriptOf(log: SessionLog): Transcript {
  return [...log.settled, ...log.live].reduce(foldTranscript, emptyTranscript())
}
