/** Form of the rows of the HTTP API: `<capability>/actions.ts`. */
import type { z } from 'zod'

/** An action that an agent answers: its extension method, and the fields next to `user`. */
export interface ToAgent {
  /** An extension method of `acp/meta.ts`. */
  method: `_sandlot/${string}`
  /** Constant fields. With a `do`, all fields but `user` are in the field `ask`. */
  fields: { readonly do?: string; readonly of?: string }
  /** The field for the body. Absent: the fields of the body are next to the constant ones. */
  body?: string
  /** The path's `id` is that of a session: the field `sessionId` next to `user`. */
  session?: true
}

interface Callers {
  /**
   * `public`: no sign-in. `cookie`: a sign-in on the page, because a leaked API key must not create
   * anything that stays valid after the key is revoked. Otherwise also a key with this scope.
   */
  scope: 'public' | 'cookie' | 'chat' | 'read' | 'files' | 'exec'
  /** Absent: everybody with the scope. A key then also needs the scope `admin`. */
  role?: 'admin'
  /** The error for guests. Absent: guests may call it. */
  guests?: string
}

interface Content extends Pick<Callers, 'guests'> {
  /** Parameters of the path, where they have more rules than being text. */
  params?: z.ZodObject
  /** The JSON body, or bytes of any size. Absent: none. */
  request?: z.ZodType<object> | 'bytes'
  /** The JSON answer, or another media type. Absent: 204 without one. */
  response?: z.ZodType<object> | 'bytes'
  /** Default: 200, without an answer 204. */
  status?: 201 | 202
  /** Absent: a handler of the service answers. */
  agent?: ToAgent
}

/** A route of the HTTP API: who may call it, what it takes and what it answers. */
export interface Action extends Callers, Content {
  /** `METHOD /path/:parameter` */
  route: `${'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE'} /${string}`
}

/** Rows of actions for the same callers: `row(route, content)`. */
export function rowsFor<const By extends Callers>(callers: By) {
  function row<const Route extends Action['route']>(route: Route): By & { route: Route }
  function row<const Route extends Action['route'], const Has extends Content>(
    route: Route,
    content: Has,
  ): By & { route: Route } & Has
  function row(route: Action['route'], content: Content = {}): Action {
    return { ...callers, route, ...content }
  }
  return row
}

export const anyone = rowsFor({ scope: 'public' })
export const cookie = rowsFor({ scope: 'cookie' })
export const chat = rowsFor({ scope: 'chat' })
export const read = rowsFor({ scope: 'read' })
export const adminRead = rowsFor({ scope: 'read', role: 'admin' })
export const adminChat = rowsFor({ scope: 'chat', role: 'admin' })
export const adminCookie = rowsFor({ scope: 'cookie', role: 'admin' })

/** Acts of an extension method: `{user, ask: {do, …}}`. `of`: another constant field. */
export function acts<const Method extends string>(method: Method, of?: string) {
  return <const Act extends string>(act: Act, body?: string) => ({
    method: `_sandlot/${method}` as const,
    fields: { do: act, of },
    body,
  })
}
