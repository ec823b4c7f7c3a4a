/**
 * A page of assistant-ui for the same events: the same fold, once a frame; the same Markdown; messages that keep their identity
 * unless they have changed.
 */
import {
  AssistantRuntimeProvider,
  MessagePrimitive,
  ThreadPrimitive,
  useExternalStoreRuntime,
} from '@assistant-ui/react'
import { emptyTranscript, foldTranscript } from '@sandlot/shared/transcript/transcript'
import { readServerFrames } from '@sandlot/shared/chat/frames'
import { useEffect, useState } from 'react'
import { createRoot } from 'react-dom/client'
import { Streamdown } from 'streamdown'

const sessionId = location.pathname.split('/').at(-1)
const known = new Map()

/** A message of the person, or all that was answered to it. */
function groupsOf(entries) {
  const groups = []
  for (const entry of entries) {
    if (entry.type !== 'message' && entry.type !== 'call') continue
    const role = entry.role === 'user' ? 'user' : 'assistant'
    const last = groups.at(-1)
    if (role === 'assistant' && last?.role === 'assistant') last.entries.push(entry)
    else groups.push({ id: entry.id, role, entries: [entry] })
  }
  return groups.map((group) => {
    const before = known.get(group.id)
    const isSame =
      before?.entries.length === group.entries.length &&
      before.entries.every((entry, at) => entry === group.entries[at])
    if (isSame) return before
    known.set(group.id, group)
    return group
  })
}

function convertMessage({ id, role, entries }) {
  return {
    id,
    role,
    content: entries.map((entry) =>
      entry.type === 'message'
        ? { type: 'text', text: entry.text }
        : {
            type: 'tool-call',
            toolCallId: entry.id,
            toolName: entry.name,
            argsText: JSON.stringify(entry.rawInput),
            result: entry.rawOutput?.forModel,
          },
    ),
  }
}

const Text = ({ text }) => <Streamdown>{text}</Streamdown>
const Tool = ({ toolName, argsText, result }) => (
  <details data-call>
    <summary>{toolName}</summary>
    <pre>{argsText}</pre>
    <pre>{result}</pre>
  </details>
)
const Message = () => (
  <MessagePrimitive.Root className="message" data-message>
    <MessagePrimitive.Parts components={{ Text, tools: { Fallback: Tool } }} />
  </MessagePrimitive.Root>
)
const COMPONENTS = { UserMessage: Message, AssistantMessage: Message }

function useTranscript() {
  const [transcript, setTranscript] = useState(emptyTranscript)
  useEffect(() => {
    let events = []
    let isCaughtUp = false
    const flush = () => {
      const batch = events
      events = []
      setTranscript((before) => batch.reduce(foldTranscript, before))
    }
    const socket = new WebSocket(`ws://${location.host}/ws`)
    socket.addEventListener('open', () =>
      socket.send(JSON.stringify({ type: 'ai_chat_resume', sessionId, after: 0 })),
    )
    socket.addEventListener('message', ({ data }) => {
      for (const read of readServerFrames(JSON.parse(data))) {
        if (!read.ok) continue
        if (read.frame.type === 'ai_chat_caught_up') isCaughtUp = true
        else if (read.frame.type !== 'ai_chat_event') continue
        else if (events.push(read.frame.event) > 1) continue
        if (isCaughtUp) requestAnimationFrame(flush)
      }
    })
    return () => socket.close()
  }, [])
  return transcript
}

function App() {
  const { entries, prompt } = useTranscript()
  const runtime = useExternalStoreRuntime({
    messages: groupsOf(entries),
    isRunning: prompt !== null,
    convertMessage,
    onNew: async () => undefined,
  })
  return (
    <AssistantRuntimeProvider runtime={runtime}>
      <ThreadPrimitive.Root>
        <ThreadPrimitive.Viewport className="viewport">
          <ThreadPrimitive.Messages components={COMPONENTS} />
        </ThreadPrimitive.Viewport>
      </ThreadPrimitive.Root>
    </AssistantRuntimeProvider>
  )
}

createRoot(document.getElementById('root')).render(<App />)
