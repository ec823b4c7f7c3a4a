/** The addresses whose WebSockets carry bytes, and what each asks of the agent. */
import { EXT } from '@sandlot/shared/acp/meta'
import type { AgentUser } from '@sandlot/shared/account/agent-user'
import { type TerminalsAsk, terminalsParams } from '@sandlot/shared/workspace/terminals'
import { SandlotError } from '@sandlot/shared/base/errors'
import type { WebSocket } from 'ws'
import type { Agents } from '../agent/agents.ts'
import { problemsOf } from './frame.ts'

const TERMINAL = /^\/api\/terminals\/([^/]+)$/

/** Opens the agent's end of it. Throws `SandlotError`. */
type OpenStream = (agent: Agents, user: AgentUser) => Promise<WebSocket>

/** Undefined: no such address. Throws `bad_request`. */
export function byteRoute(url: URL): OpenStream | undefined {
  const id = TERMINAL.exec(url.pathname)?.[1]
  if (id === undefined) return undefined
  return async (agent, user) => {
    const ask = { do: 'attach', id, from: Number(url.searchParams.get('from') ?? 0) } satisfies TerminalsAsk
    const params = terminalsParams.safeParse({ user, ask })
    if (!params.success) throw new SandlotError('bad_request', problemsOf(params.error))
    return agent.openStream(EXT.terminals, params.data)
  }
}
