/**
 * MCP servers added on the page: a user's own (`/api/mcp-servers`), and those of the deployment
 * (`/api/admin/mcp-servers`). The agent stores values of headers and variables and never returns
 * them.
 */
import { z } from 'zod'
import { ownServers } from '../account/agent-settings.ts'
import { agentUser } from '../account/agent-user.ts'

/** The owner of a list: the user, or the deployment. */
export const serverScope = z.enum(['own', 'deployment'])
export type ServerScope = z.infer<typeof serverScope>

const address = z
  .url({ protocol: /^https?$/, error: 'Give an address that begins with http:// or https://.' })
  .max(500)
const headerName = z
  .string()
  .regex(/^[!#$%&'*+.^_`|~0-9A-Za-z-]{1,100}$/, 'A header’s name is letters, digits and -.')
const variableName = z
  .string()
  .regex(/^[A-Za-z_][A-Za-z0-9_]{0,99}$/, 'A variable’s name is letters, digits and _.')
const fewer = (most: number) => `There can be ${most} of them.`
const MOST_VALUES = 32

const client = {
  clientId: z.string().trim().min(1).max(500),
  /** Requested in addition to the server's own scopes. */
  scope: z.string().trim().min(1).max(500).optional(),
  /** The only permitted authority. */
  issuer: address.optional(),
}
const serverAuth = z.discriminatedUnion('type', [
  z.strictObject({ type: z.literal('none') }),
  /** Each user signs in. Without a client id one is requested from the authority. */
  z.strictObject({ type: z.literal('oauth'), ...client, clientId: client.clientId.optional() }),
  /** The deployment signs in. */
  z.strictObject({ type: z.literal('client-credentials'), ...client }),
])

const serverConnection = z.discriminatedUnion('kind', [
  z.strictObject({
    kind: z.literal('http'),
    url: address,
    /** Names. */
    headers: z.array(headerName).max(MOST_VALUES, fewer(MOST_VALUES)).default([]),
    auth: serverAuth.default({ type: 'none' }),
  }),
  /** A program in each user's sandbox. */
  z.strictObject({
    kind: z.literal('sandbox'),
    command: z.string().trim().min(1).max(1_000),
    args: z.array(z.string().max(4_000)).max(100, fewer(100)).default([]),
    /** Names. */
    env: z.array(variableName).max(MOST_VALUES, fewer(MOST_VALUES)).default([]),
  }),
])

export type ServerConnection = z.infer<typeof serverConnection>

const toolName = z.string().min(1).max(256)

export const addedServer = z.strictObject({
  name: z
    .string()
    .regex(
      /^[A-Za-z0-9][A-Za-z0-9_-]{0,39}$/,
      'A server’s name is 1–40 letters, digits, - and _, not - or _ first.',
    ),
  enabled: z.boolean().default(true),
  connection: serverConnection,
  /** Disabled tools, by the server’s names. */
  off: z.array(toolName).max(1_000).default([]),
  /**
   * Read-only tools, which run without approval; `as-announced`: the server's annotation is
   * trusted.
   */
  readOnly: z.union([z.literal('as-announced'), z.array(toolName).max(1_000)]).default([]),
})
export type AddedServer = z.infer<typeof addedServer>

const value = z.string().min(1).max(8_192)
export const serverValues = z.strictObject({
  /** By name of the header or variable. */
  named: z.record(z.string().max(100), value).default({}),
  clientSecret: value.optional(),
})
export type ServerValues = z.infer<typeof serverValues>

/** `values`: new ones; absent values do not change. */
export const serverRequest = addedServer.extend({
  values: serverValues.default({ named: {} }),
  /** The revision that was seen; 0 for a new one. */
  revision: z.int().nonnegative().default(0),
})

export type ServerRequest = z.input<typeof serverRequest>

const serverTool = z.object({
  name: z.string(),
  title: z.string(),
  description: z.string(),
  /** The server's annotation. */
  announcedReadOnly: z.boolean(),
})

/** A server's state for the reading user. */
const serverState = z.object({
  /** `idle`: not connected since the start; `off`: not used. */
  state: z.enum(['off', 'idle', 'connecting', 'ready', 'needs_auth', 'unavailable']),
  /** The user's sign-in at it; absent: users do not sign in there. */
  signedIn: z.boolean().optional(),
  /** A sentence with details, if any. */
  why: z.string().optional(),
  /** All tools, including disabled ones. */
  tools: z.array(serverTool),
  /** A line for each tool that cannot be offered. */
  problems: z.array(z.string()),
})
export type ServerStateView = z.infer<typeof serverState>

const serverView = addedServer.extend({
  id: z.string(),
  revision: z.int(),
  /** A client secret is stored. */
  hasClientSecret: z.boolean(),
  status: serverState,
})

export type ServerView = z.infer<typeof serverView>

/** A read-only server: of the configuration, or for a user the deployment’s. */
const givenServer = z.object({
  id: z.string(),
  name: z.string(),
  /** Its address or program. */
  place: z.string(),
  status: serverState,
})
export type GivenServer = z.infer<typeof givenServer>

export const serversView = z.object({
  /** Sorted by name. */
  servers: z.array(serverView),
  given: z.array(givenServer),
  /** The kinds that the user may add. */
  may: ownServers,
  /** The maximum number. */
  most: z.int(),
})
export type ServersView = z.infer<typeof serversView>

/** The authority's address for the user. */
export const serverSignIn = z.object({ url: z.url() })
export const serverStatus = z.object({ status: serverState })

const ofServers = { of: serverScope }
const ofServer = { ...ofServers, id: z.string().max(100) }
/** `_sandlot/mcp_servers`. */
export const mcpServersParams = z.object({
  user: agentUser,
  ask: z.discriminatedUnion('do', [
    z.object({ ...ofServers, do: z.literal('list') }),
    /** `id` absent: a new one. */
    serverRequest.extend({ ...ofServers, do: z.literal('put'), id: z.string().max(100).optional() }),
    z.object({ ...ofServer, do: z.literal('remove') }),
    z.object({ ...ofServer, do: z.literal('test') }),
    z.object({ ...ofServer, do: z.literal('sign_in') }),
    z.object({ ...ofServer, do: z.literal('sign_out') }),
  ]),
})
export type McpServersAsk = z.infer<typeof mcpServersParams>['ask']
