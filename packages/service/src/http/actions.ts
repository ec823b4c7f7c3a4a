/**
 * Routes of the actions of `shared/actions.ts`: check who calls, then answer by the handler of the
 * service or by the caller's agent.
 */
import type { ActionName, Actions } from '@sandlot/shared/actions'
import type { Action, ToAgent } from '@sandlot/shared/base/action'
import { SandlotError } from '@sandlot/shared/base/errors'
import type { Context, Hono, MiddlewareHandler } from 'hono'
import type { z } from 'zod'
import { agentUserOf } from '../auth/agent-user.ts'
import { problemsOf } from '../socket/frame.ts'
import type { AppEnv, Ctx, Parts } from './context.ts'
import {
  administratorsOnly,
  membersOnly,
  pagesOnly,
  readBody,
  requireCaller,
  requireOurOrigin,
} from './request.ts'

type PathOf<A> = A extends { route: `${string} ${infer Path}` } ? Path : never

/** Reads and validates the body, as `readBody` does. */
export type Body<N extends ActionName> = () => Promise<
  Actions[N] extends { request: infer Request extends z.ZodType } ? z.output<Request> : never
>

/** A method, because the registrar holds the handlers of all actions in one list. */
interface Answering<C extends Ctx, B> {
  answer(c: C, body: B): Response | Promise<Response>
}

type OwnAction = { [N in ActionName]: Actions[N] extends { agent: object } ? never : N }[ActionName]

/** The handler of each action that the service answers itself. */
export type Handlers = {
  [N in OwnAction]: Answering<Context<AppEnv, PathOf<Actions[N]>>, Body<N>>['answer']
}

type Handler = Answering<Ctx, () => Promise<unknown>>['answer']

/** By the names of actions. */
export interface Registration {
  handlers: Readonly<Record<string, Handler>>
  /** Runs after the checks of the caller and before the handler. */
  before: Readonly<Record<string, MiddlewareHandler<AppEnv>>>
}

type ActionParts = Pick<Parts, 'accounts' | 'agent' | 'isOurs' | 'traffic'>

/** Adds the routes of these actions. Throws for one that nothing answers. */
export function addActions(
  app: Hono<AppEnv>,
  parts: ActionParts,
  { handlers, before }: Registration,
  actions: readonly (readonly [string, Action])[],
): void {
  for (const [name, action] of actions) {
    const [method = '', path = ''] = action.route.split(' ')
    const answer = handlerOf(parts, action, handlers[name])
    const checks = [...checksOf(parts, action), before[name] ?? []].flat()
    app.on(method, [path], ...checks, (c) => answer(c, () => bodyOf(c, action)))
  }
}

/** The service's handler, or one that asks the agent. */
function handlerOf(parts: ActionParts, action: Action, own: Handler | undefined): Handler {
  const { agent, route } = action
  if (own !== undefined) return own
  if (agent === undefined) throw new Error(`${route} has neither a handler nor an agent`)
  return (c) => askAgent(parts, c, action, agent)
}

/** In this order: a key's scope, the role, whether a key will do. */
function checksOf(parts: ActionParts, { route, scope, role, guests }: Action): MiddlewareHandler<AppEnv>[] {
  if (scope === 'public') return route.startsWith('GET ') ? [] : [requireOurOrigin(parts)]
  return [
    requireCaller(parts, scope),
    ...(role === 'admin' ? [administratorsOnly] : []),
    ...(guests === undefined ? [] : [membersOnly(guests)]),
    ...(scope === 'cookie' ? [pagesOnly] : []),
  ]
}

/** Throws what `readBody` throws. */
async function bodyOf(c: Ctx, { request }: Action): Promise<object> {
  return request === undefined || request === 'bytes' ? {} : readBody(c, request)
}

/** Throws `bad_request` and what the agent throws. */
async function askAgent(parts: ActionParts, c: Ctx, action: Action, agent: ToAgent): Promise<Response> {
  const { params, response, status = 200 } = action
  const named = c.req.param()
  const checked = params?.safeParse(named)
  if (checked?.success === false)
    throw new SandlotError('bad_request', `The address does not fit: ${problemsOf(checked.error)}`)
  const body = await bodyOf(c, action)
  const { method, fields, session } = agent
  const { id, ...others } = named
  const given = {
    ...(agent.body === undefined ? body : { [agent.body]: body }),
    ...(session === true ? others : named),
    ...fields,
  }
  const about = { ...(session === true ? { sessionId: id } : {}), user: agentUserOf(c.var.caller) }
  const answer = await parts.agent.request(
    method,
    fields.do === undefined ? { ...given, ...about } : { ask: given, ...about },
  )
  if (response === undefined || response === 'bytes') return c.body(null, 204)
  return c.json(response.parse(answer), status)
}
