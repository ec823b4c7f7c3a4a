/**
 * `POST /api/chat`: one prompt, its answer as JSON, or the chat frames as SSE (`Accept:
 * text/event-stream`): each message's event name is the frame's type, its data the frame, its id
 * the event's number.
 *
 * Without `approvals: "wait"` the prompt is unattended: what would ask is denied. A busy session is
 * refused (`busy`). A `requestId` makes a request repeatable: the same one again waits for, or
 * answers, the same prompt; with `Last-Event-ID` a stream goes on after that number. So a client
 * that goes away ends a prompt only if it left no `requestId` to come back with.
 */
import type { ChatRequest, ChatResponse } from '@sandlot/shared/chat/chat-api'
import { SandlotError, toErrorBody } from '@sandlot/shared/base/errors'
import { seqOf } from '@sandlot/shared/chat/events'
import type { ServerFrame } from '@sandlot/shared/chat/frames'
import { newId } from '@sandlot/shared/base/ids'
import { Queue } from '@sandlot/shared/async/streams'
import { streamSSE } from 'hono/streaming'
import type { SSEMessage } from 'hono/streaming'
import { agentUserOf } from '../../auth/agent-user.ts'
import { answerOf } from '../../chat/answer.ts'
import type { SeenSession } from '../../chat/sessions.ts'
import { sessionIdOf } from '../../chat/submission.ts'
import { findSubmitted, runPrompt } from '../../chat/unattended.ts'
import type { UnattendedOptions } from '../../chat/unattended.ts'
import type { Ctx, Parts } from '../context.ts'
import type { Handlers } from '../actions.ts'

/** Proxies cut streams on which nothing happens. */
const KEEP_ALIVE_MS = 15_000

type RunOptions = Omit<UnattendedOptions, 'onFrame' | 'gone'>

export function chatHandlers(parts: Parts) {
  return {
    prompt: async (c, body) => {
      const request = await body()
      await parts.limits.prompt(c.var.caller.account.id)
      const options = await optionsOf(c, parts, request)
      const wantsStream = (c.req.header('accept') ?? '').includes('text/event-stream')
      return wantsStream ? answerAsStream(c, parts, options) : c.json(await answerAsJson(c, parts, options))
    },
  } satisfies Partial<Handlers>
}

async function answerAsJson(c: Ctx, parts: Parts, options: RunOptions): Promise<ChatResponse> {
  const { sessionId, promptId } = await runPrompt({
    ...options,
    gone: c.req.raw.signal,
    onFrame: () => undefined,
  })
  const reader = await parts.sessions.reader()
  const answer = answerOf(sessionId, promptId, await reader.log.read(sessionId))
  if (answer === undefined)
    throw new SandlotError('internal', 'The prompt ended, but its end is not in the log.')
  return answer
}

/**
 * A refusal before the start is an ordinary error; later ones are an `ai_chat_error` in the stream.
 */
async function answerAsStream(c: Ctx, parts: Parts, options: RunOptions): Promise<Response> {
  const gone = new AbortController()
  const leave = (): void => gone.abort()
  c.req.raw.signal.addEventListener('abort', leave, { once: true })
  const frames = new Queue<StreamMessage>()
  let waiting = 0
  const onFrame = (frame: ServerFrame): void => {
    // Nothing after what was left out: a client that was too slow comes back with `Last-Event-ID`.
    if (gone.signal.aborted) return
    const message = messageOf(frame)
    if (waiting > parts.slowReaderBytes) return leave()
    waiting += message.data.length
    frames.push(message)
  }
  void runPrompt({ ...options, gone: gone.signal, onFrame }).then(
    () => frames.end(),
    (error: unknown) => frames.fail(error),
  )
  const reading = frames[Symbol.asyncIterator]()
  const first = await reading.next()

  c.header('x-accel-buffering', 'no')
  return streamSSE(c, async (stream) => {
    stream.onAbort(leave)
    const keepAlive = setInterval(() => void stream.write(': still here\n\n'), KEEP_ALIVE_MS)
    try {
      for (let next = first; next.done !== true; next = await reading.next()) {
        await stream.writeSSE(next.value)
        waiting -= next.value.data.length
      }
    } catch (error) {
      if (!(error instanceof SandlotError)) options.log.error({ err: error }, 'a stream failed')
      const { requestId } = options
      const { code, message } = toErrorBody(error, requestId)
      await stream.writeSSE(messageOf({ type: 'ai_chat_error', requestId, code, message }))
    } finally {
      clearInterval(keepAlive)
    }
  })
}

type StreamMessage = SSEMessage & { data: string }

function messageOf(frame: ServerFrame): StreamMessage {
  const seq = frame.type === 'ai_chat_event' ? seqOf(frame.event) : undefined
  return { event: frame.type, data: JSON.stringify(frame), id: seq === undefined ? undefined : String(seq) }
}

async function optionsOf(c: Ctx, parts: Parts, request: ChatRequest): Promise<RunOptions> {
  const { account, via } = c.var.caller
  const requestId = request.requestId ?? newId('r')
  const seen =
    request.sessionId === undefined ? undefined : await parts.sessions.find(account, request.sessionId)
  return {
    user: agentUserOf(c.var.caller),
    agent: parts.agent,
    log: parts.log.child({ user: account.id, requestId: c.var.requestId }),
    accessTo: async (sessionId) => (await parts.sessions.find(account, sessionId))?.access,
    requestId,
    sessionId: request.sessionId,
    text: request.message,
    images: request.images,
    uploads: parts.uploads,
    mayMakeRules: false,
    mode: request.mode,
    model: request.model,
    thoughtLevel: request.thoughtLevel,
    project: request.project,
    onError: request.onError,
    follows: request.follows,
    unattended: request.approvals !== 'wait',
    // A script that answers no approvals gets none: the sandbox is the limit. A browser keeps its
    // default.
    create: createOf(seen, via === 'key' && request.approvals !== 'wait' ? { defaultMode: 'yolo' } : {}),
    submitted:
      request.requestId === undefined ? undefined : await submittedBefore(c, parts, request, requestId),
    stopping: parts.stopping,
    cancelWhenGone: request.requestId === undefined,
  }
}

/** A session of another person exists already, and a guest may make none. */
function createOf(seen: SeenSession | undefined, create: RunOptions['create']): RunOptions['create'] {
  return seen === undefined || seen.access === 'owner' ? create : undefined
}

async function submittedBefore(
  c: Ctx,
  parts: Parts,
  request: ChatRequest,
  requestId: string,
): Promise<RunOptions['submitted']> {
  const { id } = c.var.caller.account
  const sessionId = request.sessionId ?? sessionIdOf(id, requestId)
  const seen = await parts.sessions.find(c.var.caller.account, sessionId)
  if (seen === undefined) return undefined
  const reader = await parts.sessions.reader()
  const log = await reader.log.read(sessionId)
  const submitted = findSubmitted(log, requestId, id, seen.row.userId)
  if (submitted === undefined) return undefined
  const lastEventId = Number(c.req.header('last-event-id') ?? '')
  const before = (seqOf(submitted.first) ?? 1) - 1
  const after = Number.isSafeInteger(lastEventId) ? Math.max(before, lastEventId) : before
  return { sessionId, after, end: submitted.end && seqOf(submitted.end) }
}
