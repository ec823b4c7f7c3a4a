/** The requests that make a message a prompt: its content, and the session that it goes into. */
import { createHash } from 'node:crypto'
import { methods } from '@agentclientprotocol/sdk'
import type { AgentUser } from '@sandlot/shared/account/agent-user'
import { SandlotError } from '@sandlot/shared/base/errors'
import { sessionId as sessionIdShape } from '@sandlot/shared/base/ids'
import { MAX_MESSAGE_IMAGE_BYTES } from '@sandlot/shared/chat/images'
import type { Mode } from '@sandlot/shared/chat/mode'
import type { OnError } from '@sandlot/shared/chat/sandlot-event'
import { z } from 'zod'
import type { AgentConnection } from '../agent/agent-client.ts'
import type { Uploads } from './uploads.ts'

/** A prompt as the chat's owner wants it; what `ai_chat` is for a browser. */
export interface PromptRequest {
  requestId: string
  /** Absent: a new session. */
  sessionId?: string | undefined
  text: string
  /** Ids of images that were sent before. */
  images?: readonly string[] | undefined
  /** Sets the session's mode from now on. */
  mode?: Mode | undefined
  whenBusy: 'steer' | 'queue' | 'refuse'
  /**
   * Make the session if there is none of this id; without `mode` in `defaultMode`, or else in the
   * agent's own, each as far as the user's ceiling permits.
   */
  create?: { defaultMode?: Mode }
  /** No client answers approvals. */
  unattended?: boolean | undefined
  /** The consequence of a failed call for the prompt. */
  onError?: OnError | undefined
  /** The prompt that it follows; absent: the newest. */
  follows?: string | null | undefined
  /** Sets the session's mode from now on. */
  model?: string | undefined
  thoughtLevel?: string | undefined
  /** The user's project of a new session. */
  project?: string | undefined
}

/** A content block of ACP. */
export type PromptContent = (
  | { type: 'text'; text: string }
  | { type: 'image'; mimeType: string; data: string }
)[]

/** `made`: just now. `made before`: by the same submission, whose answer did not arrive. */
interface PromptSession {
  sessionId: string
  was: 'there' | 'made' | 'made before'
}

/** The folder of a session, as the agent's sandboxes have it. */
export const CWD = '/workspace'

const newResult = z.object({ sessionId: sessionIdShape })

/**
 * Throws `not_found` and `too_large`: a message larger than the agent accepts would close the
 * connection.
 */
export async function contentOf(
  uploads: Uploads,
  userId: string,
  { text, images = [] }: PromptRequest,
): Promise<PromptContent> {
  const content: PromptContent = text === '' ? [] : [{ type: 'text', text }]
  let size = 0
  for (const id of images) {
    const { mimeType, bytes } = await uploads.read(userId, id)
    size += bytes.length
    if (size > MAX_MESSAGE_IMAGE_BYTES) throw tooMuchAttached()
    content.push({ type: 'image', mimeType, data: bytes.toString('base64') })
  }
  return content
}

/**
 * The session to prompt, in the mode and with the model that the request wants. Throws
 * `SandlotError`.
 */
export async function sessionFor(
  connection: AgentConnection,
  user: AgentUser,
  request: PromptRequest,
): Promise<PromptSession> {
  const wanted = request.sessionId
  if (wanted !== undefined && request.create === undefined) return asWanted(connection, user, wanted, request)
  // The same submission names the same session, so that a client that lost the answer can repeat
  // it.
  const sessionId = wanted ?? sessionIdOf(user.id, request.requestId)
  const { mode, model, thoughtLevel, project } = request
  const defaultMode = request.create?.defaultMode
  const sandlot = {
    user,
    sessionId,
    mode,
    defaultMode,
    model,
    thoughtLevel,
    project,
  }
  try {
    const made = newResult.parse(
      await connection.request(methods.agent.session.new, { cwd: CWD, mcpServers: [], _meta: { sandlot } }),
    )
    return { sessionId: made.sessionId, was: 'made' }
  } catch (error) {
    if (!(error instanceof SandlotError) || error.code !== 'conflict') throw error
    if (wanted === undefined) return { sessionId, was: 'made before' }
    return asWanted(connection, user, wanted, request)
  }
}

async function asWanted(
  connection: AgentConnection,
  user: AgentUser,
  sessionId: string,
  request: PromptRequest,
): Promise<PromptSession> {
  if (request.mode !== undefined) await setMode(connection, user, sessionId, request.mode)
  await setModel(connection, user, sessionId, request)
  return { sessionId, was: 'there' }
}

/** Throws `SandlotError`. */
export async function setMode(
  connection: AgentConnection,
  user: AgentUser,
  sessionId: string,
  modeId: Mode,
): Promise<void> {
  await connection.request(methods.agent.session.setMode, { sessionId, modeId, _meta: { sandlot: { user } } })
}

/**
 * The model first: which levels there are is the model's. `thoughtLevel` null: as it does by
 * itself. Throws `SandlotError`.
 */
export async function setModel(
  connection: AgentConnection,
  user: AgentUser,
  sessionId: string,
  { model, thoughtLevel }: { model?: string | undefined; thoughtLevel?: string | null | undefined },
): Promise<void> {
  const _meta = { sandlot: { user } }
  const set = (configId: string, value: string): Promise<unknown> =>
    connection.request(methods.agent.session.setConfigOption, { sessionId, configId, value, _meta })
  if (model !== undefined) await set('model', model)
  if (thoughtLevel !== undefined) await set('thought_level', thoughtLevel ?? 'default')
}

/** The session that a submission without one makes. */
export function sessionIdOf(userId: string, requestId: string): string {
  const digest = createHash('sha256')
    .update(JSON.stringify([userId, requestId]))
    .digest('hex')
  return `s_${digest.slice(0, 26)}`
}

function tooMuchAttached(): SandlotError {
  const most = `${MAX_MESSAGE_IMAGE_BYTES / 1024 / 1024} MiB`
  return new SandlotError(
    'too_large',
    `The images of a message may have ${most} together. Send some with the next one.`,
  )
}
