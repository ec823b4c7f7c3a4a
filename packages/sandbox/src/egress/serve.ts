import { setTimeout as sleep } from 'node:timers/promises'
import type { Duplex } from 'node:stream'

import type { UserBudget } from './budget.ts'
import { type ConnectionClock, createClock } from './clock.ts'
import { dial, type Dialled } from './dial.ts'
import { forward } from './forward.ts'
import type { Authority } from './host.ts'
import type { EgressPolicy } from './policy.ts'
import { orAborted } from '#shared/async/or-aborted'
import { readHead, writeChunk } from './reading.ts'
import type { EgressReason } from '../sandbox.ts'
import { EgressRefused, isDecision, refusalAnswer } from './refusal.ts'
import { checkTls, type Meter, relay } from './relay.ts'
import { type ProxyRequest, readRequest } from './request.ts'

/** Result of one connection. No path, no header, no body: those may hold secrets. */
export interface ConnectionRecord {
  host?: string
  port?: number
  /** Dialled address. */
  address?: string
  method?: string
  /** `refused`: by a rule or a budget. `failed`: allowed, but interrupted. */
  decision: 'allowed' | 'refused' | 'failed'
  reason?: EgressReason
  /** The rule that allowed or refused it; absent: a list did, or nothing. */
  ruleId?: string
  /** Bytes of bodies and of tunnels. */
  bytesUp: number
  bytesDown: number
  ms: number
}

interface ServeOptions {
  policy: Pick<EgressPolicy, 'budgets' | 'addresses' | 'credential'>
  /** Throws `EgressRefused`. Resolves with the rule that allowed it, if one did. */
  decide: (authority: Authority) => Promise<string | undefined>
  /**
   * Called before the decision; `end` closes the connection at any time. The returned function is
   * called at its end.
   */
  onOpen(authority: Authority, end: (why: unknown) => void): () => void
  budget: UserBudget
  /** Called as soon as the sender is known, before any answer. */
  onRequest(proxyUser: string | undefined): void
  /** Called instead of `onRefused` when a budget admits no further connection. */
  onOverBudget(reason: EgressReason): void
  /**
   * Called before the refusal is answered, so that the command cannot end before it is recorded.
   */
  onRefused(reason: EgressReason, authority: Authority | undefined): void
}

/** Time for a program to read the end of an answer and to close. */
const LINGER_MS = 2_000
const ESTABLISHED = 'HTTP/1.1 200 Connection established\r\n\r\n'

interface Work extends ServeOptions {
  client: Duplex
  clock: ConnectionClock
  meter: Meter
  record: ConnectionRecord
  /** Part of an answer was sent. */
  answering: boolean
}

/**
 * One connection of a program inside, from its first byte to its end, when it is closed. Undefined
 * when a budget refused it. Never rejects.
 */
export async function serveConnection(
  client: Duplex,
  options: ServeOptions,
): Promise<ConnectionRecord | undefined> {
  const began = performance.now()
  const record: ConnectionRecord = { decision: 'allowed', bytesUp: 0, bytesDown: 0, ms: 0 }
  const clock = createClock(options.policy.budgets)
  const work: Work = {
    ...options,
    client,
    clock,
    record,
    meter: createMeter(options, record),
    answering: false,
  }
  client.on('error', () => {})
  let leave: (() => void) | undefined
  try {
    leave = options.budget.enter()
    await carryOut(work)
    // Released first: after the last byte a client may connect again at once, also with a budget of
    // one.
    leave()
    await finish(client)
  } catch (error) {
    leave?.()
    await refuse(work, error, leave !== undefined)
  } finally {
    clock.end()
    client.destroy()
    record.ms = Math.round(performance.now() - began)
  }
  return leave && record
}

function createMeter({ budget }: ServeOptions, record: ConnectionRecord): Meter {
  return {
    up(bytes) {
      record.bytesUp += bytes
      budget.count(bytes)
    },
    down(bytes) {
      record.bytesDown += bytes
      budget.count(bytes)
    },
  }
}

async function carryOut(work: Work): Promise<void> {
  const request = await nextRequest(work)
  if (!request) throw new EgressRefused('broken', 'nothing was asked.')
  work.record.method = request.method
  work.record.host = request.authority.host
  work.record.port = request.authority.port
  work.onRequest(request.proxyUser)
  const over = work.onOpen(request.authority, (why) => work.clock.end(why))
  try {
    await answerRequest(work, request)
  } finally {
    over()
  }
}

async function answerRequest(work: Work, request: ProxyRequest): Promise<void> {
  const dialled = await resolveAndDial(work, request.authority)
  try {
    work.record.address = dialled.address
    if (request.kind === 'connect') await tunnel(work, request.authority, dialled)
    else await pass(work, request, dialled)
  } finally {
    dialled.socket.destroy()
  }
}

async function nextRequest(
  { client, clock, policy }: Work,
  tunnelled?: Authority,
): Promise<ProxyRequest | undefined> {
  clock.stage(policy.budgets.requestMs, 'the request')
  const head = await readHead(client, clock.signal)
  return head === undefined ? undefined : readRequest(head, tunnelled)
}

/** The name is resolved once, and the checked addresses are the dialled ones. */
async function resolveAndDial(
  { policy, clock, decide, record }: Work,
  authority: Authority,
): Promise<Dialled> {
  const { connectMs } = policy.budgets
  clock.stage(connectMs, 'reaching the server', 'unreachable')
  const ruleId = await orAborted(decide(authority), clock.signal)
  if (ruleId !== undefined) record.ruleId = ruleId
  const until = performance.now() + connectMs
  const addresses = await policy.addresses(authority, clock.signal)
  return dial(addresses, authority.port, { signal: clock.signal, ms: until - performance.now() })
}

async function tunnel(work: Work, authority: Authority, dialled: Dialled): Promise<void> {
  const { client, clock, policy } = work
  if (authority.port === 80) {
    // Plain HTTP in a tunnel does not bypass the rules: it is parsed like any other request.
    await writeChunk(client, ESTABLISHED, clock.signal)
    const request = await nextRequest(work, authority)
    if (request) await pass(work, request, dialled)
    return
  }
  work.answering = true
  await writeChunk(client, ESTABLISHED, clock.signal)
  if (authority.port === 443) {
    clock.stage(policy.budgets.requestMs, 'the beginning of TLS')
    await checkTls(client, authority.host, clock.signal)
  }
  await relay(client, dialled.socket, work.meter, clock)
}

async function pass(work: Work, request: ProxyRequest, { socket }: Dialled): Promise<void> {
  const { client, meter, clock, policy } = work
  const credential = policy.credential(request.authority.host)
  const onAnswer = (): void => {
    work.answering = true
  }
  await forward({ client, request, socket, credential, meter, clock, onAnswer })
}

async function refuse(work: Work, error: unknown, wasLetIn: boolean): Promise<void> {
  const { client, clock, record, budget } = work
  const refused =
    error instanceof EgressRefused
      ? error
      : new EgressRefused('broken', 'the connection broke.', { cause: error })
  const { reason } = refused
  record.decision = isDecision(reason) ? 'refused' : 'failed'
  record.reason = reason
  if (refused.ruleId !== undefined) record.ruleId = refused.ruleId
  const { host, port } = record
  clock.end(refused)
  if (!wasLetIn) work.onOverBudget(reason)
  else if (isDecision(reason))
    work.onRefused(reason, host === undefined || port === undefined ? undefined : { host, port })
  // In the middle of an answer only a reset, by `destroy`, signals the failure.
  if (work.answering || client.destroyed) return
  client.write(refusalAnswer(refused, budget.retryAfterMs(reason) / 1_000))
  await finish(client)
}

/**
 * Ends the stream and drains it until the other side closes, at most `LINGER_MS`.
 */
async function finish(client: Duplex): Promise<void> {
  if (client.destroyed) return
  const closed = new AbortController()
  client.once('close', () => closed.abort())
  client.end()
  client.resume()
  await sleep(LINGER_MS, undefined, { signal: closed.signal, ref: false }).catch(() => {})
}
