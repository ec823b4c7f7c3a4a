/**
 * MCP servers that are added on the page: a person's own (`/api/mcp-servers`), and those of the
 * deployment (`/api/admin/mcp-servers`). Values of headers and variables are kept by the agent and
 * never shown again.
 */
import { z } from 'zod'
import { ownServers } from '../account/agent-settings.ts'
import { agentUser } from '../account/agent-user.ts'

/** Of whom a list is: the asking person, or all. */
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
  /** Asked for beside what the server names. */
  scope: z.string().trim().min(1).max(500).optional(),
  /** The only authority that is used. */
  issuer: address.optional(),
}
const serverAuth = z.discriminatedUnion('type', [
  z.strictObject({ type: z.literal('none') }),
  /** Each person signs in. Without a client’s id: the authority is asked for one. */
  z.strictObject({ type: z.literal('oauth'), ...client, clientId: client.clientId.optional() }),
  /** The deployment itself signs in. */
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
  /** A program in the sandbox of each person who uses it. */
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
  /** Tools that are not offered, by the server’s name of them. */
  off: z.array(toolName).max(1_000).default([]),
  /** Tools that change nothing, so they run without approval; `as-announced`: it is believed. */
  readOnly: z.union([z.literal('as-announced'), z.array(toolName).max(1_000)]).default([]),
})
export type AddedServer = z.infer<typeof addedServer>

const value = z.string().min(1).max(8_192)
export const serverValues = z.strictObject({
  /** By name: of headers, or of variables. */
  named: z.record(z.string().max(100), value).default({}),
  clientSecret: value.optional(),
})
export type ServerValues = z.infer<typeof serverValues>

/** `values`: those that are given anew; what is absent stays as it is. */
export const serverRequest = addedServer.extend({
  values: serverValues.default({ named: {} }),
  /** Of what was seen; 0 for a new one. */
  revision: z.int().nonnegative().default(0),
})

export type ServerRequest = z.input<typeof serverRequest>

const serverTool = z.object({
  name: z.string(),
  title: z.string(),
  description: z.string(),
  /** What the server says about it. */
  announcedReadOnly: z.boolean(),
})

/** How a server stands for the person who looks at it. */
const serverState = z.object({
  /** `idle`: not connected since the start; `off`: not used. */
  state: z.enum(['off', 'idle', 'connecting', 'ready', 'needs_auth', 'unavailable']),
  /** Whether the person has signed in to it; absent: there people do not. */
  signedIn: z.boolean().optional(),
  /** A sentence about it, where there is more to say. */
  why: z.string().optional(),
  /** All that it has, also those that are not offered. */
  tools: z.array(serverTool),
  /** A line for each tool that cannot be offered. */
  problems: z.array(z.string()),
})
export type ServerStateView = z.infer<typeof serverState>

const serverView = addedServer.extend({
  id: z.string(),
  revision: z.int(),
  /** Whether a client’s secret is stored. */
  hasClientSecret: z.boolean(),
  status: serverState,
})

export type ServerView = z.infer<typeof serverView>

/** A server that is not changed here: of the configuration, or for a person the deployment’s. */
const givenServer = z.object({
  id: z.string(),
  name: z.string(),
  /** Where it is. */
  place: z.string(),
  status: serverState,
})
export type GivenServer = z.infer<typeof givenServer>

export const serversView = z.object({
  /** Of the scope, sorted by name. */
  servers: z.array(serverView),
  given: z.array(givenServer),
  /** What the person may bring. */
  may: ownServers,
  /** How many there can be. */
  most: z.int(),
})
export type ServersView = z.infer<typeof serversView>

/** Where the person signs in. */
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
