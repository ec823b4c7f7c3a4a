/** The addresses whose WebSockets carry bytes, and what each asks of the agent. */
import { EXT, type AgentUser, streamTicket } from '@sandlot/shared/acp-meta'
import { type TerminalsAsk, terminalsParams } from '@sandlot/shared/desk/terminals'
import { SandlotError } from '@sandlot/shared/errors'
import type { AgentLink } from '../agent/agent-link.ts'
import { problemsOf } from './frame.ts'

const TERMINAL = /^\/api\/terminals\/([^/]+)$/

/** Asks for the ticket of a stream. Throws `SandlotError`. */
type AskTicket = (agent: AgentLink, user: AgentUser) => Promise<string>

/** Undefined: no such address. Throws `bad_request`. */
export function byteRoute(url: URL): AskTicket | undefined {
  const id = TERMINAL.exec(url.pathname)?.[1]
  if (id === undefined) return undefined
  return async (agent, user) => {
    const ask = { do: 'attach', id, from: Number(url.searchParams.get('from') ?? 0) } satisfies TerminalsAsk
    const params = terminalsParams.safeParse({ user, ask })
    if (!params.success) throw new SandlotError('bad_request', problemsOf(params.error))
    return streamTicket.parse(await agent.request(EXT.terminals, params.data)).ticket
  }
}
