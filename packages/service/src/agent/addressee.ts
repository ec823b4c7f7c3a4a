/** Which of several agents a request is for, and whether it may be sent again. */
import { methods } from '@agentclientprotocol/sdk'
import { EXT } from '@sandlot/shared/acp/meta'
import { z } from 'zod'

/** That of the person who owns the session, where there is such a one; else that of `person`. */
interface Addressee {
  session?: string | undefined
  /** Undefined: any agent will do. */
  person?: string | undefined
}

const someone = z.looseObject({ id: z.string() })
const asking = z.object({ user: someone })
const addressed = z.looseObject({
  sessionId: z.string().optional(),
  userId: z.string().optional(),
  user: someone.optional(),
  ask: z
    .looseObject({
      do: z.string().optional(),
      userId: z.string().optional(),
      userIds: z.array(z.string()).optional(),
    })
    .optional(),
  _meta: z.looseObject({ sandlot: z.looseObject({ user: someone }) }).optional(),
})

/**
 * Administration goes to the administrator's own agent: any would do, and there they see at once
 * what they have changed.
 */
export function addresseeOf(method: string, params: object): Addressee {
  const { sessionId, userId, user, ask, _meta } = addressed.parse(params)
  const whose = method === EXT.sandboxes ? (ask?.userId ?? ask?.userIds?.[0]) : userId
  return { session: sessionId, person: whose ?? user?.id ?? _meta?.sandlot.user.id }
}

/** The id of the user who asks; undefined: it is the service itself. */
export function askerOf(params: object): string | undefined {
  return asking.safeParse(params).data?.user.id
}

/** Asks that only read. */
const READS = new Set([
  'asked',
  'attach',
  'connect',
  'effective',
  'get',
  'jobs',
  'list',
  'output',
  'own',
  'preview',
  'read',
  'search',
  'use',
  'view',
])
/** Methods that only read, or have the same result when they run twice. */
const REPEATABLE = new Set<string>([
  EXT.approvals,
  EXT.budgets,
  EXT.cancelCall,
  EXT.comment,
  EXT.configuration,
  EXT.instructions,
  EXT.markChats,
  EXT.metrics,
  EXT.putPerson,
  EXT.rename,
  EXT.status,
  EXT.toolStats,
  EXT.unqueue,
  methods.agent.session.load,
])

/** True if the request may be sent again although it may have taken effect. */
export function isRepeatable(method: string, params: object): boolean {
  if (REPEATABLE.has(method)) return true
  const { ask } = addressed.parse(params)
  return ask?.do !== undefined && READS.has(ask.do)
}

/** An agent and what it answered. */
export interface Answered<T> {
  replica: string
  answer: T
}
