/** The address on which the agent listens for services on other hosts. */
import { hostname } from 'node:os'

export interface AgentListen {
  host: string
  port: number
  /** `host:port`, as services reach it. */
  advertised: string
  /** Undefined: the one in the folder of keys. */
  token: string | undefined
}

/** An agent's address, for services. `certificate`: in PEM, of a TLS listener. */
export interface AgentAddress {
  url: string
  certificate?: string
}

const ANY_ADDRESS = new Set(['0.0.0.0', '[::]'])

interface Read {
  DATABASE_URL?: string | undefined
  SANDLOT_AGENT_LISTEN?: string | undefined
  SANDLOT_AGENT_ADVERTISE?: string | undefined
  SANDLOT_AGENT_TOKEN?: string | undefined
}

/** Undefined: nowhere. What is wrong is added to `problems`. */
export function readListen(read: Read, problems: string[]): AgentListen | undefined {
  const { SANDLOT_AGENT_LISTEN: listen, SANDLOT_AGENT_ADVERTISE: advertise } = read
  if (listen === undefined) {
    if (advertise !== undefined) problems.push('SANDLOT_AGENT_ADVERTISE: needs SANDLOT_AGENT_LISTEN')
    return undefined
  }
  // Its certificate is in the database, without which no service would accept it.
  if (read.DATABASE_URL === undefined) problems.push('SANDLOT_AGENT_LISTEN: needs DATABASE_URL')
  const at = listen.lastIndexOf(':')
  const host = listen.slice(0, at)
  const port = Number(listen.slice(at + 1))
  return {
    host: host.replaceAll(/[[\]]/g, ''),
    port,
    advertised: advertise ?? `${ANY_ADDRESS.has(host) ? hostname() : host}:${port}`,
    token: read.SANDLOT_AGENT_TOKEN,
  }
}
