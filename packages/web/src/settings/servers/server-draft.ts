/** A server as it is typed, and what is sent of it. Pure. */
import type { ServerConnection, ServerRequest, ServerView } from '@sandlot/shared/admin/mcp-servers'

/** A header or a variable. */
export interface ValueDraft {
  key: string
  name: string
  value: string
  /** A value is stored, and stays where none is typed. */
  stored: boolean
}

export interface ServerDraft {
  name: string
  kind: ServerConnection['kind']
  url: string
  auth: 'none' | 'oauth' | 'client-credentials'
  clientId: string
  clientSecret: string
  scope: string
  issuer: string
  headers: readonly ValueDraft[]
  command: string
  /** One a line. */
  args: string
  env: readonly ValueDraft[]
}

export function newValue(name = '', stored = false): ValueDraft {
  return { key: crypto.randomUUID(), name, value: '', stored }
}

export function draftOf(server: ServerView | null): ServerDraft {
  const { name = '', connection } = server ?? {}
  const http = connection?.kind === 'http' ? connection : undefined
  const program = connection?.kind === 'sandbox' ? connection : undefined
  const auth = http === undefined || http.auth.type === 'none' ? undefined : http.auth
  const stored = (names: readonly string[] = []) => names.map((one) => newValue(one, true))
  return {
    name,
    kind: connection?.kind ?? 'http',
    url: http?.url ?? '',
    auth: auth?.type ?? 'none',
    clientId: auth?.clientId ?? '',
    clientSecret: '',
    scope: auth?.scope ?? '',
    issuer: auth?.issuer ?? '',
    headers: stored(http?.headers),
    command: program?.command ?? '',
    args: (program?.args ?? []).join('\n'),
    env: stored(program?.env),
  }
}

/** In place of `server`; null: a new one. */
export function requestOf(draft: ServerDraft, server: ServerView | null): ServerRequest {
  const given = draft.kind === 'http' ? draft.headers : draft.env
  const named = given.filter(({ name, value }) => name.trim() !== '' && value !== '')
  return {
    name: draft.name.trim(),
    enabled: server?.enabled,
    off: server?.off,
    readOnly: server?.readOnly,
    revision: server?.revision,
    connection: connectionOf(draft),
    values: {
      named: Object.fromEntries(named.map(({ name, value }) => [name.trim(), value])),
      clientSecret: draft.auth === 'none' ? undefined : typed(draft.clientSecret),
    },
  }
}

function connectionOf(draft: ServerDraft): ServerRequest['connection'] {
  const names = (values: readonly ValueDraft[]) =>
    values.map(({ name }) => name.trim()).filter((name) => name !== '')
  if (draft.kind === 'sandbox') {
    const args = draft.args.split('\n').filter((line) => line.trim() !== '')
    return { kind: 'sandbox', command: draft.command.trim(), args, env: names(draft.env) }
  }
  return { kind: 'http', url: draft.url.trim(), headers: names(draft.headers), auth: authOf(draft) }
}

function authOf({ auth, clientId, scope, issuer }: ServerDraft) {
  const about = { scope: typed(scope), issuer: typed(issuer) }
  if (auth === 'oauth') return { type: auth, clientId: typed(clientId), ...about }
  if (auth === 'client-credentials') return { type: auth, clientId: clientId.trim(), ...about }
  return { type: auth }
}

function typed(text: string): string | undefined {
  return text.trim() === '' ? undefined : text.trim()
}
