/**
 * The session list, one session, and the full output of a call: of one's own sessions and of those
 * that are shared with one. What else a person may do in a session, the agent decides.
 */
import { methods } from '@agentclientprotocol/sdk'
import { EXT } from '@sandlot/shared/acp/meta'
import type { Account } from '@sandlot/shared/account/api'
import type { AgentUser } from '@sandlot/shared/account/agent-user'
import type { WaitingApprovals } from '@sandlot/shared/chat/pending'
import { renameRequest } from '@sandlot/shared/chat/chat-api'
import { pendingApprovalList } from '@sandlot/shared/chat/pending-approvals'
import { isDiffsId } from '@sandlot/shared/chat/file-changes'
import { SandlotError } from '@sandlot/shared/base/errors'
import type { SessionSummary } from '@sandlot/shared/chat/frames'
import { toSessionSummary } from '@sandlot/storage/tables/rows'
import type { SessionRow } from '@sandlot/storage/tables/records'
import { z } from 'zod'
import { agentUserOf } from '../../auth/agent-user.ts'
import { answerApproval } from '../../chat/approvals.ts'
import { InOrder } from '../../chat/in-order.ts'
import { openExport } from '../../chat/prompt-export.ts'
import { problemsOf } from '../../socket/frame.ts'
import { approversOf, lineFor, refuseOthers, refuseWatchers } from '../../chat/sessions.ts'
import type { Ctx, Parts } from '../context.ts'
import type { Body, Handlers } from '../actions.ts'
import { sendOutput } from './outputs.ts'

const PAGE = 50
const MAX_PAGE = 200
/** Records of prompts that one person may wait for; they are made one after another. */
const MAX_WAITING_EXPORTS = 4

const flag = z
  .enum(['true', 'false'])
  .transform((said) => said === 'true')
  .optional()
const page = z.object({
  limit: z.coerce.number().int().min(1).max(MAX_PAGE).default(PAGE),
  before: z.coerce.number().int().positive().optional(),
  title: renameRequest.shape.title.optional(),
  archived: flag,
  pinned: flag,
  project: z.string().max(64).optional(),
})

export function sessionsHandlers(parts: Parts) {
  const exportsInOrder = new InOrder(MAX_WAITING_EXPORTS)
  return {
    listChats: (c) => listChats(parts, c),
    getChat: (c) => getChat(parts, c, c.req.param('id')),
    cancelPrompt: (c) => cancelPrompt(parts, c, c.req.param('id')),
    answerApproval: (c, body) => answerCall(parts, c, c.req.param(), body),
    exportPrompt: (c) => exportPrompt(parts, exportsInOrder, c, c.req.param('id'), c.req.param('promptId')),
    deleteChat: (c) => deleteChat(parts, c, c.req.param('id')),
    getOutput: (c) => getOutput(parts, c, c.req.param('id'), c.req.param('callId')),
  } satisfies Partial<Handlers>
}

async function listChats(parts: Parts, c: Ctx): Promise<Response> {
  const { sessions } = parts
  const asked = page.safeParse(c.req.query())
  if (!asked.success) throw new SandlotError('bad_request', problemsOf(asked.error))
  const { limit, before, title, ...marks } = asked.data
  const reader = await sessions.reader()
  const { account } = c.var.caller
  const rows = await reader.sessions.list(account, {
    limit,
    before,
    title,
    marks,
  })
  const next = rows.length < limit ? null : (rows.at(-1)?.updatedAt ?? null)
  return c.json({ sessions: await linesFor(parts, account, rows), next })
}

async function getChat(parts: Parts, c: Ctx, id: string): Promise<Response> {
  const { sessions } = parts
  const { account } = c.var.caller
  const { row } = await sessions.get(account, id)
  const [line] = await linesFor(parts, account, [row])
  // Its share has ended between the two reads.
  if (line === undefined) throw new SandlotError('not_found', 'There is no such chat.')
  return c.json(line)
}

async function cancelPrompt({ agent, sessions }: Parts, c: Ctx, sessionId: string): Promise<Response> {
  const user = agentUserOf(c.var.caller)
  const { access } = await sessions.get(c.var.caller.account, sessionId)
  // A notification is not answered.
  refuseWatchers(access)
  await agent.notify(methods.agent.session.cancel, {
    sessionId,
    _meta: { sandlot: { user } },
  })
  return c.body(null, 204)
}

async function answerCall(
  { agent, sessions }: Parts,
  c: Ctx,
  { id: sessionId, callId: toolCallId }: { id: string; callId: string },
  body: Body<'answerApproval'>,
): Promise<Response> {
  const answer = await body()
  const { via } = c.var.caller
  const user = agentUserOf(c.var.caller)
  await sessions.get(c.var.caller.account, sessionId)
  const by = { user, mayMakeRules: via === 'sign-in' }
  await answerApproval(agent, by, { ...answer, sessionId, toolCallId })
  return c.body(null, 204)
}

async function exportPrompt(
  { agent, sessions }: Parts,
  exportsInOrder: InOrder,
  c: Ctx,
  sessionId: string,
  promptId: string,
): Promise<Response> {
  const user = agentUserOf(c.var.caller)
  await sessions.get(c.var.caller.account, sessionId)
  const opened = Promise.withResolvers<ReadableStream<Uint8Array>>()
  exportsInOrder
    .run(user.id, async () => {
      const { document, sent } = await openExport(agent, { sessionId, promptId, user })
      opened.resolve(document)
      await sent
    })
    .catch(opened.reject)
  const document = await opened.promise
  const name = `prompt-${promptId.replaceAll(/[^A-Za-z0-9_.-]/g, '_').slice(0, 100)}.json`
  return c.body(document, 200, {
    'content-type': 'application/json',
    'content-disposition': `attachment; filename="${name}"`,
  })
}

async function deleteChat({ agent, sessions }: Parts, c: Ctx, sessionId: string): Promise<Response> {
  const user = agentUserOf(c.var.caller)
  const { access } = await sessions.get(c.var.caller.account, sessionId)
  // To delete what is not there is no failure for the agent.
  refuseOthers(access)
  await agent.request(methods.agent.session.delete, {
    sessionId,
    _meta: { sandlot: { user } },
  })
  return c.body(null, 204)
}

async function getOutput({ sessions }: Parts, c: Ctx, sessionId: string, callId: string): Promise<Response> {
  const { access } = await sessions.get(c.var.caller.account, sessionId)
  // Whole texts of the owner's files, also of those that no call has shown.
  if (isDiffsId(callId)) refuseOthers(access)
  return sendOutput(c, await sessions.reader(), sessionId, callId)
}

/** `GET /api/approvals`: what waits in all chats in which this person may answer. */
export function approvalsHandlers(parts: Parts) {
  const { agent, sessions } = parts
  return {
    listWaiting: async (c) => {
      const { account } = c.var.caller
      const user = agentUserOf(c.var.caller)
      const rows = await (await sessions.reader()).sessions.list(account, { waiting: true, limit: PAGE })
      const open = (await linesFor(parts, account, rows)).filter(({ waiting }) => waiting > 0)
      const found = await Promise.all(
        open.map(async ({ sessionId, title: chat, owner }) => {
          const approvals = await pendingIn(agent, sessionId, user)
          return approvals.map((one) => ({ ...one, sessionId, chat, owner }))
        }),
      )
      const approvals = found.flat().toSorted((a, b) => a.askedAt - b.askedAt)
      return c.json({ approvals, more: rows.length >= PAGE } satisfies WaitingApprovals)
    },
  } satisfies Partial<Handlers>
}

/** None, where the chat was deleted or its share ended in between. */
async function pendingIn(agent: Parts['agent'], sessionId: string, user: AgentUser) {
  try {
    return pendingApprovalList.parse(await agent.request(EXT.approvals, { sessionId, user })).approvals
  } catch (error) {
    if (error instanceof SandlotError && error.code === 'not_found') return []
    throw error
  }
}

/** The lines of these sessions in this person's list. */
async function linesFor(
  { accounts, sessions }: Parts,
  who: Account,
  rows: readonly SessionRow[],
): Promise<SessionSummary[]> {
  const ids = rows.map(({ id }) => id)
  const reader = await sessions.reader()
  const shares = await reader.shares.ofAll(ids)
  const marks = await reader.chats.marks(who.id, ids)
  const users = rows.some(({ userId }) => userId !== who.id) ? await accounts.users.list() : []
  const now = Date.now()
  return rows.flatMap((row) => {
    const line = toSessionSummary(row)
    const given = shares.get(row.id) ?? []
    const named = approversOf(line, row.userId, given, users, now)
    return lineFor(who, line, { ...named, shares: given, mark: marks.get(row.id), now }) ?? []
  })
}
