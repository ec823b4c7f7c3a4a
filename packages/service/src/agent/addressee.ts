/** Which of several agents a request is for, and whether it may be sent again. */
import { methods } from '@agentclientprotocol/sdk'
import { agentRequest } from '@sandlot/shared/agent-requests'
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

export function addresseeOf(method: string, params: object): Addressee {
  const { sessionId, userId, user, ask, _meta } = addressed.parse(params)
  const isAbout = agentRequest(method)?.addressee === 'subject'
  const subject = isAbout ? (userId ?? ask?.userId ?? ask?.userIds?.[0]) : undefined
  return { session: sessionId, person: subject ?? user?.id ?? _meta?.sandlot.user.id }
}

/** The id of the user who asks; undefined: it is the service itself. */
export function askerOf(params: object): string | undefined {
  return asking.safeParse(params).data?.user.id
}

/** True if the request may be sent again although it may have taken effect. */
export function isRepeatable(method: string, params: object): boolean {
  if (method === methods.agent.session.load) return true
  const { repeatable = [] } = agentRequest(method) ?? {}
  const act = repeatable === true ? undefined : addressed.parse(params).ask?.do
  return repeatable === true || (act !== undefined && repeatable.includes(act))
}

/** An agent and what it answered. */
export interface Answered<T> {
  replica: string
  answer: T
}
