/**
 * The `mcpServers` section of the configuration file: the servers, where they run, what is trusted.
 */
import { nearest } from '@sandlot/shared/config/names'
import { z } from 'zod'

const SECOND = 1_000
const text = (example: string): z.ZodString =>
  z
    .string({ error: `must be text, for example ${example}` })
    .min(1, `must not be empty; for example ${example}`)
const milliseconds = (from: number, to: number): z.ZodNumber =>
  z
    .number({ error: `must be a number of milliseconds, ${from} to ${to}` })
    .int(`must be a whole number of milliseconds, ${from} to ${to}`)
    .min(from, `must be at least ${from} (milliseconds)`)
    .max(to, `must be at most ${to} (milliseconds)`)
const texts = z.record(z.string(), z.string({ error: 'must be text, for example "${GITHUB_TOKEN}"' }))

const toolSettings = z.strictObject({
  /** Milliseconds without an answer or progress. */
  timeoutMs: milliseconds(SECOND, 300 * SECOND).optional(),
  /** Milliseconds that a result may be used again; only for a tool that reads. */
  cacheMs: milliseconds(SECOND, 86_400 * SECOND).optional(),
  /** Retries of a call after a transient failure; only for a tool that is idempotent. */
  retries: z.number().int().min(0).max(5).optional(),
  /** At most `calls` calls of one user in `perMs` milliseconds. */
  rateLimit: z
    .strictObject({ calls: z.number().int().min(1), perMs: milliseconds(SECOND, 86_400 * SECOND) })
    .optional(),
})

const everywhere = {
  enabled: z.boolean().default(true),
  /** Milliseconds without an answer or progress after which a call is over. */
  timeoutMs: milliseconds(SECOND, 300 * SECOND).default(10 * SECOND),
  /** Milliseconds after which a call is over although it reports progress. */
  maxTimeoutMs: milliseconds(SECOND, 300 * SECOND).default(300 * SECOND),
  /** Milliseconds for a server to start and to list its tools. */
  startTimeoutMs: milliseconds(SECOND, 120 * SECOND).default(15 * SECOND),
  /** Milliseconds without a call after which a server that runs for one user is stopped. */
  idleMs: milliseconds(SECOND, 86_400 * SECOND).default(600 * SECOND),
  /** Offer only these of its tools. */
  tools: z.array(text('"search-flights"')).optional(),
  /**
   * Tools that change nothing: they run at once, concurrently and without approval. `as-announced`
   * trusts the server's annotation.
   */
  readOnly: z
    .union([z.literal('as-announced'), z.array(z.string())], {
      error: 'must be "as-announced" (the server is believed), or a list of tools like ["search-flights"]',
    })
    .default([]),
  toolSettings: z.record(z.string(), toolSettings).default({}),
}

const stdioServer = z.strictObject({
  ...everywhere,
  command: text('"npx"'),
  args: z.array(z.string({ error: 'must be text, for example "--verbose"' })).default([]),
  /** Its whole environment, apart from `PATH`, `HOME`, `LANG` and `TMPDIR`, which have defaults. */
  env: texts.default({}),
  /** Absolute; in a sandbox also relative to the workspace. */
  cwd: text('"/srv/tools"').optional(),
  /**
   * `deployment`: next to the agent, for operators' servers. `sandbox`: in each user's own sandbox.
   */
  where: z
    .enum(['deployment', 'sandbox'], { error: 'must be "deployment" (beside the agent) or "sandbox"' })
    .default('deployment'),
})

const client = {
  clientId: text('"sandlot"'),
  clientSecret: text('"${MCP_SECRET}"').optional(),
  /** Requested in addition to the scopes that the server names. */
  scope: text('"calendar.read"').optional(),
  /**
   * The only authorization server that is used, whatever the server names; it may be on a private
   * network.
   */
  issuer: z
    .url({ protocol: /^https?$/, error: 'must be an address like https://login.example.org' })
    .optional(),
}

/** Each user signs in. */
const oauth = z
  .strictObject({
    ...client,
    type: z.literal('oauth'),
    /** Absent: the authorization server fetches the client document, or registers a client. */
    clientId: client.clientId.optional(),
    /**
     * True to offer the client document at the public address. `false`: it cannot be reached
     * there.
     */
    clientDocument: z.boolean().default(true),
  })
  .refine(({ clientId, clientSecret }) => clientSecret === undefined || clientId !== undefined, {
    path: ['clientSecret'],
    error: 'needs the clientId that it belongs to',
  })

/** The deployment itself is the client; no user signs in. */
const clientCredentials = z
  .strictObject({
    ...client,
    type: z.literal('client-credentials'),
    /** PEM, PKCS #8: signs the token request, in place of a secret. */
    privateKey: text('"${MCP_KEY}"').optional(),
    algorithm: z.enum(['ES256', 'ES384', 'RS256', 'PS256']).default('ES256'),
  })
  .refine(({ clientSecret, privateKey }) => (clientSecret === undefined) !== (privateKey === undefined), {
    path: ['clientSecret'],
    error: 'or privateKey is needed, and only one of them',
  })

const httpServer = z.strictObject({
  ...everywhere,
  url: z.url({ protocol: /^https?$/, error: 'must be an address like https://mcp.example.org/mcp' }),
  headers: texts.default({}),
  auth: z
    .discriminatedUnion('type', [oauth, clientCredentials], {
      error: 'must say its type: "oauth" (each user signs in) or "client-credentials" (the deployment does)',
    })
    .optional(),
})

export type StdioServerConfig = z.output<typeof stdioServer>
export type HttpServerConfig = z.output<typeof httpServer>
export type McpServerConfig = StdioServerConfig | HttpServerConfig

export function isHttp(server: McpServerConfig): server is HttpServerConfig {
  return 'url' in server
}

/** `url` or `command` says which kind it is; problems are reported for that kind. */
const server = z.record(z.string(), z.unknown()).transform((value, ctx): McpServerConfig => {
  const { url, command } = value
  if ((url === undefined) === (command === undefined)) {
    const message =
      url === undefined
        ? 'needs a command like {"command": "npx", "args": ["…"]}, or an address like {"url": "https://mcp.example.org/mcp"}'
        : 'has a command and an address; keep one'
    ctx.addIssue({ code: 'custom', message })
    return z.NEVER
  }
  const schema = url === undefined ? stdioServer : httpServer
  const read = schema.safeParse(value)
  if (read.success) return read.data
  for (const issue of read.error.issues) {
    for (const { path, message } of plainIssues(issue, Object.keys(schema.shape)))
      ctx.addIssue({ code: 'custom', path: [...path], message })
  }
  return z.NEVER
})

function plainIssues(
  issue: z.core.$ZodIssue,
  known: readonly string[],
): { path: readonly PropertyKey[]; message: string }[] {
  if (issue.code !== 'unrecognized_keys') return [issue]
  return issue.keys.map((key) => {
    const meant = issue.path.length === 0 ? nearest(key, known) : undefined
    const hint = meant === undefined ? '' : `; did you mean ${meant}?`
    return { path: [...issue.path, key], message: `is not a setting of an MCP server${hint}` }
  })
}

const NAME = /^[A-Za-z0-9][A-Za-z0-9_-]{0,39}$/

/** A server's name is the first half of its tools' ids. */
export const mcpServersSection = z
  .record(z.string(), server)
  .default({})
  .superRefine((servers, ctx) => {
    for (const name of Object.keys(servers)) {
      if (NAME.test(name)) continue
      const message = 'its name must be 1–40 letters, digits, - and _, for example flights-mcp'
      ctx.addIssue({ code: 'custom', path: [name], message })
    }
    // The model could not distinguish these two names.
    const seen = new Map<string, string>()
    for (const name of Object.keys(servers)) {
      const folded = name.toLowerCase().replaceAll('-', '_')
      const other = seen.get(folded)
      if (other !== undefined)
        ctx.addIssue({ code: 'custom', path: [name], message: `is too like ${other}; choose another name` })
      seen.set(folded, name)
    }
  })
export type McpServers = Record<string, McpServerConfig>
