/**
 * A user's secrets by name: `GET /api/secrets`, `PUT` and `DELETE /api/secrets/:name`. Values are
 * write-only.
 */
import { z } from 'zod'
import { agentUser } from './agent-user.ts'

export const MAX_SECRET_CHARS = 16_384

/**
 * Names that earlier versions gave to stored sign-ins of MCP servers. These are migrated from
 * there, so the names are reserved.
 */
const isFormerSignIn = (name: string): boolean => /^mcp\..+\.(?:tokens|client)$/.test(name)

/** A secret's name, also in `${secret:NAME}` of the configuration. */
export const secretName = z
  .string()
  .regex(/^[A-Za-z_][A-Za-z0-9_.-]{0,127}$/, 'must be letters, digits, _ . -, at most 128, not a digit first')
  .refine(
    (name) => !isFormerSignIn(name),
    'must not be mcp.….tokens or mcp.….client: the agent keeps sign-ins there',
  )

/** `PUT /api/secrets/:name` → 204. */
export const secretValue = z.strictObject({ value: z.string().min(1).max(MAX_SECRET_CHARS) })

/** `GET /api/secrets`, by name. `updatedAt`: epoch milliseconds. */
export const secretList = z.object({
  secrets: z.array(z.object({ name: z.string(), updatedAt: z.number() })),
})
export type SecretList = z.infer<typeof secretList>

/** `_sandlot/secrets`; the answer is the updated `SecretList`. */
export const secretsParams = z.object({
  user: agentUser,
  ask: z.discriminatedUnion('do', [
    z.object({ do: z.literal('list') }),
    z.object({ do: z.literal('set'), name: secretName, value: secretValue.shape.value }),
    z.object({ do: z.literal('remove'), name: secretName }),
  ]),
})
