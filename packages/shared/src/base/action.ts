/** Form of the rows of the HTTP API: `<capability>/actions.ts`. */
import type { z } from 'zod'

/** An action that an agent answers: its extension method, and the fields next to `user`. */
export interface ToAgent {
  /** An extension method of `acp/meta.ts`. */
  method: string
  /** Constant fields. With a `do`, all fields but `user` are in the field `ask`. */
  fields: { readonly do?: string; readonly of?: string }
  /** The field for the body. Absent: the fields of the body are next to the constant ones. */
  body?: string
}

/** A route of the HTTP API: who may call it, what it takes and what it answers. */
export interface Action {
  /** `METHOD /path/:parameter` */
  route: `${'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE'} /${string}`
  /**
   * `public`: no sign-in. `cookie`: a sign-in on the page, because a leaked API key must not create
   * anything that stays valid after the key is revoked. Otherwise also a key with this scope.
   */
  scope: 'public' | 'cookie' | 'chat' | 'read' | 'files' | 'exec'
  /** Absent: everybody with the scope. A key then also needs the scope `admin`. */
  role?: 'admin'
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

/** The extension method with `{user, ask: {do, …}}`. `of`: another constant field. */
export function ask(method: string, act: string, more: { of?: string; body?: string } = {}): ToAgent {
  return { method: `_sandlot/${method}`, fields: { do: act, of: more.of }, body: more.body }
}
