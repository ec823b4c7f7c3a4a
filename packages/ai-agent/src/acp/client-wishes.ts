/** What a client says that it can do, as what it wants to be told and how. Pure. */
import type { ClientCapabilities } from '@agentclientprotocol/sdk'
import { serviceCapability } from '@sandlot/shared/acp-meta'
import { z } from 'zod'
import type { ForeignOptions } from './foreign-client.ts'

export interface ClientWishes extends ForeignOptions {
  /** Our own service: it gets our stream as it is, and says for which user it asks. */
  ours: boolean
  /** Our own service's connection for what concerns everybody: it is told of every change in a session list. */
  sessionChanges: boolean
  /** It can ask its user whether to open a link. */
  links: boolean
}

const meta = z.looseObject({
  sandlot: serviceCapability.optional().catch(undefined),
  terminal_output: z.boolean().optional().catch(undefined),
  terminal_output_delta: z.boolean().optional().catch(undefined),
})

/** Of a client that has said nothing. */
export const NO_WISHES: ClientWishes = {
  ours: false,
  sessionChanges: false,
  links: false,
  terminal: undefined,
}

export function wishesOf(capabilities: ClientCapabilities | undefined): ClientWishes {
  const said = meta.parse(capabilities?._meta ?? {})
  return {
    ours: said.sandlot !== undefined,
    sessionChanges: said.sandlot?.sessionChanges === true,
    links: capabilities?.elicitation?.url != null,
    terminal: terminalOf(said),
    compaction: capabilities?.session?.compaction != null,
    notices: capabilities?.session?.notices != null,
  }
}

function terminalOf(said: z.output<typeof meta>): ForeignOptions['terminal'] {
  if (said.terminal_output === true) return 'terminal_output'
  return said.terminal_output_delta === true ? 'terminal_output_delta' : undefined
}
