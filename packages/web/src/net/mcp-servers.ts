/** MCP servers, one's own and those of the deployment. Failures are `ApiError`s. */
import {
  type ServerRequest,
  type ServerScope,
  serverSignIn,
  type ServersView,
  type ServerStateView,
  serverStatus,
  serversView,
} from '@sandlot/shared/admin/mcp-servers'
import { call } from './http.ts'

const PATH: Record<ServerScope, string> = { own: '/api/mcp-servers', deployment: '/api/admin/mcp-servers' }
const pathOf = (of: ServerScope, id: string) => `${PATH[of]}/${encodeURIComponent(id)}`

export function fetchServers(of: ServerScope): Promise<ServersView> {
  return call(serversView, 'GET', PATH[of])
}

/** `id` null: a new one. Values that are not given stay. */
export function putServer(of: ServerScope, id: string | null, server: ServerRequest): Promise<ServersView> {
  return id === null
    ? call(serversView, 'POST', PATH[of], server)
    : call(serversView, 'PUT', pathOf(of, id), server)
}

export function removeServer(of: ServerScope, id: string): Promise<ServersView> {
  return call(serversView, 'DELETE', pathOf(of, id))
}

/** Asks the server now. */
export async function tryServer(of: ServerScope, id: string): Promise<ServerStateView> {
  return (await call(serverStatus, 'POST', `${pathOf(of, id)}/test`, {})).status
}

/** Only the person who asks. */
export function signOutOf(of: ServerScope, id: string): Promise<ServersView> {
  return call(serversView, 'POST', `${pathOf(of, id)}/sign-out`, {})
}

/** The URL of the sign-in, which brings the person back to the list. */
export async function beginSignIn(of: ServerScope, id: string): Promise<string> {
  return (await call(serverSignIn, 'POST', `${pathOf(of, id)}/sign-in`, {})).url
}
