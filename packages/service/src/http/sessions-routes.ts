/** The session list, one session, and the full output of a call. Of one's own sessions only. */
import { methods } from '@agentclientprotocol/sdk'
import { EXT, forkParams, forkResult, renameParams } from '@sandlot/shared/acp-meta'
import { approvalAnswer } from '@sandlot/shared/api'
import { pendingApprovalList } from '@sandlot/shared/pending-approvals'
import { toErrorBody, SandlotError } from '@sandlot/shared/errors'
import type { SessionReader } from '@sandlot/storage/sessions/store'
import { Hono } from 'hono'
import { z } from 'zod'
import { agentUserOf } from '../auth/agent-user.ts'
import { answerApproval } from '../chat/approvals.ts'
import { InOrder } from '../chat/in-order.ts'
import { openExport } from '../chat/prompt-export.ts'
import { problemsOf } from '../socket/frame.ts'
import { summaryOf } from '../chat/sessions.ts'
import type { AppEnv, Parts } from './context.ts'
import { readRange } from './range.ts'
import type { ByteRange } from './range.ts'
import { readBody, requireCaller } from './request.ts'

const PAGE = 50
const MAX_PAGE = 200
/** Records of prompts that one person may wait for; they are made one after another. */
const MAX_WAITING_EXPORTS = 4
/** Bytes read from the database at a time. */
const PIECE_BYTES = 256 * 1024

const page = z.object({
  limit: z.coerce.number().int().min(1).max(MAX_PAGE).default(PAGE),
  before: z.coerce.number().int().positive().optional(),
  title: renameParams.shape.title.optional(),
})

const renameBody = renameParams.pick({ title: true })
const forkBody = forkParams.pick({ promptId: true, where: true })

export function sessionsRoutes(parts: Parts): Hono<AppEnv> {
  const { agent, sessions } = parts
  const exportsInOrder = new InOrder(MAX_WAITING_EXPORTS)
  return new Hono<AppEnv>()
    .use(requireCaller(parts))
    .get('/', async (c) => {
      const asked = page.safeParse(c.req.query())
      if (!asked.success) throw new SandlotError('bad_request', problemsOf(asked.error))
      const { limit, before, title } = asked.data
      const reader = await sessions.reader()
      const rows = await reader.listSessions(c.var.caller.account.id, {
        limit,
        before,
        title,
      })
      const next = rows.length < limit ? null : (rows.at(-1)?.updatedAt ?? null)
      return c.json({ sessions: rows.map(summaryOf), next })
    })
    .get('/:id', async (c) => {
      const row = await sessions.get(c.var.caller.account.id, c.req.param('id'))
      return c.json(summaryOf(row))
    })
    .patch('/:id', async (c) => {
      const { title } = await readBody(c, renameBody)
      const user = agentUserOf(c.var.caller.account)
      const sessionId = c.req.param('id')
      await sessions.get(user.id, sessionId)
      await agent.request(EXT.rename, { sessionId, title, user })
      return c.body(null, 204)
    })
    .post('/:id/fork', async (c) => {
      const asked = await readBody(c, forkBody)
      const user = agentUserOf(c.var.caller.account)
      const sessionId = c.req.param('id')
      await sessions.get(user.id, sessionId)
      const made = await agent.request(EXT.fork, { ...asked, sessionId, user })
      return c.json(forkResult.parse(made), 201)
    })
    .post('/:id/cancel', async (c) => {
      const user = agentUserOf(c.var.caller.account)
      const sessionId = c.req.param('id')
      await sessions.get(user.id, sessionId)
      await agent.notify(methods.agent.session.cancel, {
        sessionId,
        _meta: { sandlot: { user } },
      })
      return c.body(null, 204)
    })
    .get('/:id/approvals', async (c) => {
      const user = agentUserOf(c.var.caller.account)
      const sessionId = c.req.param('id')
      await sessions.get(user.id, sessionId)
      const pending = await agent.request(EXT.approvals, { sessionId, user })
      return c.json(pendingApprovalList.parse(pending))
    })
    .post('/:id/approvals/:callId', async (c) => {
      const answer = await readBody(c, approvalAnswer)
      const { account, via } = c.var.caller
      const user = agentUserOf(account)
      const { id: sessionId, callId: toolCallId } = c.req.param()
      await sessions.get(user.id, sessionId)
      const by = { user, mayMakeRules: via === 'sign-in' }
      await answerApproval(agent, by, { ...answer, sessionId, toolCallId })
      return c.body(null, 204)
    })
    .get('/:id/prompts/:promptId/export', async (c) => {
      const user = agentUserOf(c.var.caller.account)
      const { id: sessionId, promptId } = c.req.param()
      await sessions.get(user.id, sessionId)
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
    })
    .delete('/:id', async (c) => {
      const user = agentUserOf(c.var.caller.account)
      const sessionId = c.req.param('id')
      await sessions.get(user.id, sessionId)
      await agent.request(methods.agent.session.delete, {
        sessionId,
        _meta: { sandlot: { user } },
      })
      return c.body(null, 204)
    })
    .get('/:id/outputs/:callId', async (c) => {
      const { id: sessionId, callId } = c.req.param()
      await sessions.get(c.var.caller.account.id, sessionId)
      const reader = await sessions.reader()
      const output = await reader.outputInfo(sessionId, callId)
      if (output === undefined) throw new SandlotError('not_found', 'This call has no stored output.')
      const size = output.storedBytes
      const range = readRange(c.req.header('range'), size)
      const download = c.req.query('download')
      const headers: Record<string, string> = {
        'content-type': 'text/plain; charset=utf-8',
        'x-content-type-options': 'nosniff',
        'content-disposition': dispositionOf(
          callId,
          download !== undefined && download !== '0' && download !== 'false',
        ),
        'accept-ranges': 'bytes',
        'cache-control': output.complete ? 'private, max-age=3600' : 'no-store',
        'x-output-total-bytes': String(output.totalBytes),
        'x-output-complete': String(output.complete),
      }
      if (range === 'none') {
        const problem = new SandlotError('bad_request', `There are only ${size} bytes.`)
        return c.json(toErrorBody(problem, c.var.requestId), 416, { 'content-range': `bytes */${size}` })
      }
      const wanted = range === 'all' ? { from: 0, to: size } : range
      headers['content-length'] = String(wanted.to - wanted.from)
      if (range !== 'all') headers['content-range'] = `bytes ${wanted.from}-${wanted.to - 1}/${size}`
      const body = c.req.method === 'HEAD' ? null : streamOutput(reader, sessionId, callId, wanted)
      return new Response(body, { status: range === 'all' ? 200 : 206, headers })
    })
}

/** Read as the client takes it. */
function streamOutput(
  reader: SessionReader,
  sessionId: string,
  callId: string,
  { from, to }: ByteRange,
): ReadableStream<Uint8Array> {
  let at = from
  return new ReadableStream<Uint8Array>({
    async pull(controller) {
      if (at >= to) {
        controller.close()
        return
      }
      const piece = await reader.readOutput(sessionId, callId, at, Math.min(at + PIECE_BYTES, to))
      // Deleted meanwhile: the promised length cannot be kept, and the client must notice.
      if (piece.length === 0) throw new Error('sessions: the output ended early')
      at += piece.length
      controller.enqueue(piece)
    },
  })
}

function dispositionOf(callId: string, download: boolean): string {
  const name = callId.replaceAll(/[^A-Za-z0-9_.-]/g, '_').slice(0, 100)
  return `${download ? 'attachment' : 'inline'}; filename="${name}.txt"`
}
