/**
 * Requests about one person, from our own service: secrets, MCP sign-ins, instructions, rules,
 * removal.
 */
import { EXT } from '@sandlot/shared/acp/meta'
import { SandlotError, messageOf } from '@sandlot/shared/base/errors'
import type { NewAudit } from '@sandlot/shared/admin/audit'
import type { SecretList } from '@sandlot/shared/account/secrets'
import { actorOf } from '../actor.ts'
import type { PersonParts, ProtocolParts } from '../parts.ts'
import type { ExtensionHandlers } from '../handler-context.ts'
import type { SignInResult } from '../../mcp/oauth/sign-ins.ts'
import { type Instructions, type TeamInstructions } from '@sandlot/shared/account/instructions'
import { TEAM } from '../../config/instructions.ts'

/** `_sandlot/secrets`: a person's secrets by name. Values are written and never returned. */
export function secretsRequests(parts: PersonParts) {
  return {
    [EXT.secrets]: async ({ params: { user: actor, ask } }): Promise<SecretList> => {
      const { id } = actor
      const { secrets } = parts
      const line = (what: 'secret_set' | 'secret_removed', name: string) =>
        ({ ...actorOf(actor), what, whom: { name } }) satisfies NewAudit
      if (ask.do === 'set') await secrets.set(id, ask.name, ask.value, line('secret_set', ask.name))
      if (ask.do === 'remove' && !(await secrets.remove(id, ask.name, line('secret_removed', ask.name))))
        throw new SandlotError('not_found', 'You have no secret of that name.')
      return { secrets: await secrets.names(id) }
    },
  } satisfies Partial<ExtensionHandlers>
}

/** `_sandlot/mcp_sign_in`: completes a person's sign-in at an MCP server. */
export function mcpRequests(parts: PersonParts) {
  return {
    [EXT.mcpSignIn]: async ({ params: { user, answer } }): Promise<SignInResult> => {
      return parts.finishSignIn(user.id, new URLSearchParams(answer))
    },
  } satisfies Partial<ExtensionHandlers>
}

/** `_sandlot/instructions`: a person's own instructions, and the team's, for our own service. */
export function instructionsRequests(parts: PersonParts & ProtocolParts) {
  return {
    [EXT.instructions]: async ({
      params: { user: actor, of, text },
    }): Promise<Instructions | TeamInstructions> => {
      const { instructions, configuredInstructions: configured } = parts
      const { id, role } = actor
      if (of === 'team' && text !== undefined && role !== 'admin')
        throw new SandlotError('forbidden', 'Only an administrator can say what holds for the team.')
      const whose = of === 'team' ? TEAM : id
      const line =
        of === 'team'
          ? ({ ...actorOf(actor), what: 'instructions_changed', whom: { name: 'Everybody' } } as const)
          : undefined
      if (text !== undefined) await instructions.put(whose, text.trim().toWellFormed(), Date.now(), line)
      if (line !== undefined && text !== undefined)
        parts.log.info({ by: id }, 'an administrator changed the instructions of the team')
      const stored = { text: await instructions.get(whose) }
      if (of === 'own') return stored
      return { ...stored, configured: configured?.team ?? '', operator: configured?.operator ?? '' }
    },
  } satisfies Partial<ExtensionHandlers>
}

/** `_sandlot/rules`: a person's own rules, for our own service. */
export function rulesRequests(parts: ProtocolParts) {
  return {
    [EXT.rules]: async ({ params: { user: actor, ask }, signal }) => {
      return parts.manager.rules.answer(actor.id, ask, signal, actorOf(actor))
    },
  } satisfies Partial<ExtensionHandlers>
}

/** `_sandlot/remove_person`, from our own service only, which checks authorization. */
export function removalRequests(parts: PersonParts & ProtocolParts) {
  return {
    [EXT.removePerson]: async ({ params: { userId, data, handOver } }) => {
      try {
        await parts.removePerson(userId, data, handOver)
      } catch (error) {
        const { cause } = error instanceof Error ? error : {}
        const stack = cause instanceof Error ? cause.stack : undefined
        parts.log.warn(
          { userId, data, error: messageOf(error), stack },
          'a person is not completely removed yet',
        )
        throw error
      }
      return {}
    },
  } satisfies Partial<ExtensionHandlers>
}
