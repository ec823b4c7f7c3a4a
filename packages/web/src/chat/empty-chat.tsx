import {
  Compass,
  FileCode2,
  FlaskConical,
  FolderSearch,
  HardDrive,
  PackagePlus,
  UsersRound,
  type LucideIcon,
} from 'lucide-react'
import { me as meSchema, type Me } from '@sandlot/shared/account/api'
import { useEffect, useState } from 'react'
import { useChat, useChatState } from '../state/chat-context.ts'
import { DemoExplanation } from './demo-note.tsx'
import { call } from '../net/call.ts'
import { InProject } from '../state/chat-hooks.tsx'

const IDEAS: { icon: LucideIcon; title: string; text: string }[] = [
  {
    icon: Compass,
    title: 'Take the tour',
    // The demo model knows this sentence.
    text: 'Show me what you can do: a plan, files, a command that asks first, and a failure.',
  },
  { icon: FolderSearch, title: 'What’s in my workspace', text: 'What is in my workspace?' },
  {
    icon: FileCode2,
    title: 'Write and run',
    text: 'Make a file hello.py that prints the primes below 50 and run it.',
  },
  { icon: HardDrive, title: 'Ask the machine', text: 'Run df -h and tell me what it says.' },
]

/** In place of a new chat, which guests have none of: what a guest is, and what to do. */
export function GuestHome() {
  const { chat, me } = useChat()
  const shared = useChatState((state) => state.sessions)
  useEffect(() => chat.show(null), [chat])
  return (
    <div className="flex flex-1 flex-col items-center justify-center px-6 pb-24 text-center">
      <UsersRound className="size-7 text-faint" aria-hidden />
      <h1 className="mt-3 text-xl font-semibold tracking-tight">Welcome, {me.name.split(' ')[0]}</h1>
      <p className="mt-1.5 max-w-md text-base text-muted">
        You’re a guest: you can read and join chats that people share with you.
      </p>
      <p className="mt-4 min-h-10 max-w-md text-sm text-muted" role="status">
        {shared !== null &&
          (shared.length === 0
            ? 'Nothing is shared with you yet. Shared chats appear here automatically.'
            : 'Choose a chat from the list.')}
      </p>
    </div>
  )
}

/** A new chat: what this is, and four ways to begin, each sent at once. */
export function EmptyChat(props: { onIdea: (text: string) => void }) {
  const { me } = useChat()
  const firstName = me.name.split(' ')[0] ?? me.name
  return (
    <div className="flex w-full flex-col gap-7 py-8">
      <div>
        <InProject />
        <h1 className="text-2xl font-semibold tracking-tight">What are we doing today, {firstName}?</h1>
        <p className="mt-1.5 text-base text-muted">
          The agent works in your own container. Its files persist and are private to you.
        </p>
      </div>
      <ul className="grid gap-2 sm:grid-cols-2">
        {IDEAS.map((idea) => (
          <li key={idea.title}>
            <button
              type="button"
              onClick={() => props.onIdea(idea.text)}
              className="flex h-full w-full gap-3 rounded-xl border border-line bg-raised p-3.5 text-left shadow-1 transition-colors hover:border-line-strong hover:bg-hover "
            >
              <idea.icon className="mt-0.5 size-4 shrink-0 text-accent" aria-hidden />
              <span>
                <span className="block text-sm font-medium">{idea.title}</span>
                <span className="mt-0.5 block text-sm text-muted">{idea.text}</span>
              </span>
            </button>
          </li>
        ))}
      </ul>
      <FullImageNote />
      {me.model.demo && (
        <section aria-label="Demo model" className="flex gap-3 border-t border-line pt-5 text-sm text-muted">
          <FlaskConical className="mt-0.5 size-4 shrink-0 text-waiting" aria-hidden />
          <div className="flex min-w-0 flex-1 flex-col gap-2">
            <DemoExplanation />
          </div>
        </section>
      )}
    </div>
  )
}

/* That sandboxes will have more tools soon, or could not get them. */

/** It takes minutes. */
const ASK_AGAIN_MS = 15_000

const WORDS = {
  building:
    'More sandbox tools (numpy, pandas, matplotlib, ffmpeg and others) are being installed. Sandboxes get them on their next start.',
  failed:
    'More sandbox tools (numpy, pandas, matplotlib, ffmpeg and others) couldn’t be installed. Existing tools still work.',
}

function FullImageNote() {
  const state = useFullImage(useChat().me)
  if (state === undefined) return null
  return (
    <p
      role="status"
      data-testid="full-image"
      className="flex gap-3 border-t border-line pt-5 text-sm text-muted"
    >
      <PackagePlus className="mt-0.5 size-4 shrink-0" aria-hidden />
      <span>
        {WORDS[state]}
        {state === 'failed' && (
          <>
            {' '}
            The reason is in <code className="text-ink">log/full-image.log</code> of Sandlot’s data folder.
          </>
        )}
      </span>
    </p>
  )
}

function useFullImage(me: Me): 'building' | 'failed' | undefined {
  const [state, setState] = useState(me.fullImage?.state)
  useEffect(() => {
    if (state !== 'building') return
    const asking = setInterval(() => {
      // Away just now: asked again with the next tick.
      call('getMe').then(
        (now) => setState(meSchema.parse(now).fullImage?.state),
        () => undefined,
      )
    }, ASK_AGAIN_MS)
    return () => clearInterval(asking)
  }, [state])
  return state
}
