/** For orchestrators and monitoring: liveness, readiness with reasons, metrics. */
import { readFile } from 'node:fs/promises'
import type { AgentStatus } from '@sandlot/shared/acp/meta'
import type { Readiness } from '@sandlot/shared/account/api'
import { SandlotError, messageOf } from '@sandlot/shared/base/errors'
import { LoopDelay } from '@sandlot/shared/node/loop-delay'
import { backupStatus } from '@sandlot/shared/admin/backup-status'
import { Hono } from 'hono'
import { secretsEqual } from '@sandlot/shared/node/secret-file'
import type { AppEnv, Ctx, Parts } from './context.ts'
import { isLocal } from './request.ts'

type Reason = Readiness['reasons'][number]

export function healthRoutes(parts: Parts): Hono<AppEnv> {
  const { agent, config, metrics } = parts
  const loopDelay = new LoopDelay()
  return new Hono<AppEnv>()
    .get('/healthz', (c) => c.json({ ok: true }))
    .get('/readyz', async (c) => {
      const readiness = await readinessOf(parts)
      return c.json(readiness, readiness.ready ? 200 : 503)
    })
    .get('/metrics', async (c) => {
      if (!mayReadMetrics(c, config.metricsToken)) {
        throw new SandlotError('forbidden', refusalOf(config.metricsToken))
      }
      // Without the agent, the service's own are the whole answer.
      const agents = await agent.metrics()
      metrics.loopDelays({ service: loopDelay.take(), agent: agents?.eventLoopDelayMs })
      const text = [await metrics.text(), ...(agents === undefined ? [] : [agents.text])].join('\n')
      return c.body(text, 200, { 'content-type': metrics.contentType })
    })
}

/** The answer of `/readyz`, from which alerts to an operator are raised too. */
export async function readinessOf({
  config,
  accounts,
  sessions,
  agent,
  external,
  stopping,
}: Pick<Parts, 'config' | 'accounts' | 'sessions' | 'agent' | 'external' | 'stopping'>): Promise<Readiness> {
  const [ours, status, backup] = await Promise.all([
    Promise.all([
      check('accounts', 'accounts can be read', () => accounts.ping()),
      check('sessions', 'saved sessions can be read', async () => (await sessions.reader()).sessions.get('')),
    ]),
    agent.status().catch((error: unknown) => messageOf(error)),
    lastBackup(config.backupStatusFile),
  ])
  const reasons: Reason[] = [...ours, agentReason(status)]
  if (stopping.aborted) reasons.push({ part: 'service', ok: false, message: 'stopping' })
  const mine = reasons.every((reason) => reason.ok)
  // Degraded: who is signed in stays so, and other ways in remain.
  for (const { name, problem } of external.providers)
    reasons.push({ part: 'sign-in', ok: problem === undefined, message: `${name}: ${problem ?? 'ready'}` })
  reasons.push(...backup)
  if (typeof status === 'string') return { ready: false, reasons }
  // The agent decides if a missing engine counts as unready: without one, chat still works.
  return { ready: mine && status.ready, reasons: [...reasons, ...status.reasons] }
}

/** Nothing where none was tried, or it cannot be read. Everybody may read this: without a path. */
async function lastBackup(file: string): Promise<Reason[]> {
  try {
    const text = await readFile(file, 'utf8')
    const { last, failed } = backupStatus.parse(JSON.parse(text))
    const message = 'The last backup failed; ./sandlot doctor and its log say why.'
    if (failed !== undefined) return [{ part: 'backup', ok: false, message }]
    return last === undefined
      ? []
      : [{ part: 'backup', ok: true, message: `The last backup is of ${last.at}.` }]
  } catch {
    return []
  }
}

function agentReason(status: AgentStatus | string): Reason {
  if (typeof status === 'string') return { part: 'agent', ok: false, message: status }
  return { part: 'agent', ok: true, message: 'the agent answers' }
}

async function check(part: string, good: string, probe: () => Promise<unknown>): Promise<Reason> {
  try {
    await probe()
    return { part, ok: true, message: good }
  } catch (error) {
    return {
      part,
      ok: false,
      message: error instanceof SandlotError ? error.message : `${part} cannot be read`,
    }
  }
}

/** In a container, "this machine" is the container, and its host is another one. */
function refusalOf(token: string | undefined): string {
  const before =
    token === undefined
      ? 'Set SANDLOT_METRICS_TOKEN (16 characters or more), and send it'
      : 'Send SANDLOT_METRICS_TOKEN'
  return `Metrics are for this machine, which for a service in a container is the container. ${before} as “Authorization: Bearer …”.`
}

function mayReadMetrics(c: Ctx, token: string | undefined): boolean {
  const given = /^Bearer\s+(\S+)$/i.exec(c.req.header('authorization') ?? '')?.[1]
  if (token !== undefined && given !== undefined) return secretsEqual(token, given)
  return isLocal(c) && isLocalName(c.req.header('host') ?? '')
}

/**
 * Against DNS rebinding: a page whose name resolves to this machine could read them in a browser
 * here.
 */
function isLocalName(host: string): boolean {
  return /^(localhost|127(\.\d{1,3}){3}|\[::1\])(:\d{1,5})?$/i.test(host)
}
