/** Actions of the service's HTTP API by their names, typed by their rows in `shared/actions.ts`. */
import type { ActionName, Actions } from '@sandlot/shared/actions'
import type { z } from 'zod'
import { ApiError, errorOf, jsonOf } from './http.ts'
import { ROUTES } from './routes.ts'

type ParamOf<Route> = Route extends `${string}:${infer Name}/${infer Rest}`
  ? Name | ParamOf<`/${Rest}`>
  : Route extends `${string}:${infer Name}`
    ? Name
    : never

type Needs<N extends ActionName> = ([ParamOf<Actions[N]['route']>] extends [never]
  ? unknown
  : { params: Record<ParamOf<Actions[N]['route']>, string | number> }) &
  (Actions[N] extends { request: infer Request extends z.ZodType } ? { body: z.input<Request> } : unknown)

/** An array repeats its name. What is undefined is left out. */
type Query = Readonly<Record<string, string | number | boolean | readonly string[] | undefined>>

type Options<N extends ActionName> = Needs<N> & { query?: Query; signal?: AbortSignal | undefined }

/** Optional where the action needs neither parameters nor a body. */
type OptionsArgs<N extends ActionName> =
  object extends Needs<N> ? [options?: Options<N>] : [options: Options<N>]

/**
 * The answer as it is sent, so a field with a default may be absent: a service of the previous
 * version omits it. The schema of the row fills it in.
 */
type Answer<N extends ActionName> = Actions[N] extends { response: infer Response }
  ? Response extends z.ZodType
    ? z.input<Response>
    : unknown
  : void

interface Sent {
  params?: Readonly<Record<string, string | number>>
  query?: Query
  body?: unknown
  signal?: AbortSignal | undefined
}

/** Throws `ApiError`, and an `AbortError` when `signal` aborts. */
export async function call<N extends ActionName>(name: N, ...args: OptionsArgs<N>): Promise<Answer<N>>
export async function call(name: ActionName, options: Sent = {}): Promise<unknown> {
  const { body, signal } = options
  const [method = ''] = ROUTES[name].split(' ')
  let response: Response
  try {
    response = await fetch(pathOf(name, options), {
      method,
      credentials: 'same-origin',
      // A deletion is sent also while the page closes.
      keepalive: method === 'DELETE',
      headers: {
        accept: 'application/json',
        ...(body === undefined ? {} : { 'content-type': 'application/json' }),
      },
      body: body === undefined ? null : JSON.stringify(body),
      signal: signal ?? null,
    })
  } catch (error) {
    if (signal?.aborted === true) throw error
    throw new ApiError('network', 'Can’t reach Sandlot. Check that it’s running.', undefined, {
      cause: error,
    })
  }
  if (response.status === 204) return undefined
  const text = await response.text()
  const json = jsonOf(text)
  // Our service sends a body with everything but 204: something in between has dropped it.
  if (!response.ok || json === undefined || text === '') throw errorOf(response.status, json)
  return json
}

/** The address of an action, for links and for requests with or for bytes. */
export function urlOf<N extends ActionName>(name: N, ...args: OptionsArgs<N>): string
export function urlOf(name: ActionName, options: Sent = {}): string {
  return pathOf(name, options)
}

function pathOf(name: ActionName, { params = {}, query = {} }: Sent): string {
  const [, route = ''] = ROUTES[name].split(' ')
  const path = route.replaceAll(/:(\w+)/g, (_, key: string) => encodeURIComponent(params[key] ?? ''))
  const asked = new URLSearchParams(
    Object.entries(query).flatMap(([key, value]) =>
      value === undefined ? [] : [value].flat().map((one) => [key, String(one)]),
    ),
  )
  return asked.size === 0 ? path : `${path}?${asked}`
}
