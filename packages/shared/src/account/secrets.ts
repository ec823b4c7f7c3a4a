/**
 * Secrets of a user by name: `GET /api/secrets`, `PUT` and `DELETE /api/secrets/:name`. Values go
 * in and never come out.
 */
import { z } from 'zod'
import { agentUser } from './agent-user.ts'

export const MAX_SECRET_CHARS = 16_384

/**
 * How earlier versions called what they kept of a sign-in to an MCP server. It is taken over from
 * there, so nothing may take its place.
 */
const isFormerSignIn = (name: string): boolean => /^mcp\..+\.(?:tokens|client)$/.test(name)

/** As people call one, and as `${secret:NAME}` names it in the configuration. */
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

/** `_sandlot/secrets`; the answer is a `SecretList` as it is afterwards. */
export const secretsParams = z.object({
  user: agentUser,
  ask: z.discriminatedUnion('do', [
    z.object({ do: z.literal('list') }),
    z.object({ do: z.literal('set'), name: secretName, value: secretValue.shape.value }),
    z.object({ do: z.literal('remove'), name: secretName }),
  ]),
})
