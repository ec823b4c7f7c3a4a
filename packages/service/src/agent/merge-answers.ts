/** Merges the answers of several agents into one. */
import type { AgentMetricsAnswer, AgentStatus } from '@sandlot/shared/acp/meta'
import { SandlotError } from '@sandlot/shared/base/errors'
import { type AgentOverview, agentOverview } from '@sandlot/shared/admin/overview'
import { type ToolLine, type ToolStatsView, toolStatsView } from '@sandlot/shared/admin/tool-stats'
import { readReadable } from '@sandlot/shared/base/readable'
import type { Replica } from '@sandlot/storage/replicas/replicas'
import type { z } from 'zod'
import type { Answered } from './addressee.ts'

/** Ready while any is, which takes everybody. Throws `agent_unavailable`: none has answered. */
export function mergeStatus(
  statuses: readonly AgentStatus[],
  replicas: readonly Replica[],
  silent: readonly Replica[],
): AgentStatus {
  const best = statuses.find(({ ready }) => ready) ?? statuses[0]
  if (best === undefined) throw new SandlotError('agent_unavailable', 'No agent answers.')
  // A reason of all agents is listed once.
  const reasons = new Map(
    statuses.flatMap((status) => status.reasons).map((reason) => [JSON.stringify(reason), reason]),
  )
  const named = replicas.filter(({ id }) => id !== '')
  const names = named.map((one) => nameOf(one, silent.includes(one))).toSorted()
  const message = `${names.length} ${names.length === 1 ? 'agent' : 'agents'}: ${names.join(', ')}`
  return {
    ...best,
    reasons: [
      ...reasons.values(),
      ...(named.length > 0 ? [{ part: 'agents', ok: silent.length === 0, message }] : []),
    ],
  }
}

function nameOf({ id, version, draining }: Replica, isSilent: boolean): string {
  const notes = [version, ...(draining ? ['drains'] : []), ...(isSilent ? ['does not answer'] : [])]
  return `${id} (${notes.join(', ')})`
}

/** At least one answer. Prompts are merged; each agent has its own slots. */
export function mergeOverviews(all: readonly Answered<unknown>[]): AgentOverview {
  const views = readableOf(all, agentOverview)
  const [first] = views
  if (first === undefined) throw new SandlotError('agent_unavailable', 'No agent answers.')
  if (views.length === 1) return first
  const limits = views.flatMap(({ promptLimit }) => promptLimit ?? [])
  return {
    ...first,
    prompts: views
      .flatMap(({ prompts }) => prompts)
      .toSorted((a, b) => (a.line?.place ?? 0) - (b.line?.place ?? 0) || a.startedAt - b.startedAt),
    promptLimit: limits.length === views.length ? limits.reduce((sum, one) => sum + one, 0) : undefined,
  }
}

/** Counts of all together; times as of the calls of each, weighted, which is near enough to see. */
export function mergeToolStats(all: readonly Answered<unknown>[]): ToolStatsView {
  const views = readableOf(all, toolStatsView)
  const byTool = Map.groupBy(
    views.flatMap(({ tools }) => tools),
    ({ id }) => id,
  )
  return {
    since: Math.min(...views.map(({ since }) => since)),
    tools: [...byTool.values()].flatMap((lines) => lines.reduce(addLines)),
  }
}

/** The readable answers; throws `agent_unavailable` where there is none. */
function readableOf<T>(all: readonly Answered<unknown>[], schema: z.ZodType<T>): T[] {
  const reads = all.map(({ answer }) => readReadable(schema, answer))
  const views = reads.flatMap((read) => (read.ok ? [read.data] : []))
  if (views.length === 0 && all.length > 0)
    throw new SandlotError(
      'agent_unavailable',
      `What the agent answers cannot be read: ${reads.flatMap(({ problems }) => problems).join('; ')}`,
    )
  return views
}

function addLines(a: ToolLine, b: ToolLine): ToolLine {
  const calls = a.calls + b.calls
  const mean = (of: 'successRate' | 'truncationRate' | 'p50Ms'): number =>
    calls === 0 ? a[of] : (a[of] * a.calls + b[of] * b.calls) / calls
  return {
    ...a,
    calls,
    successRate: mean('successRate'),
    truncationRate: mean('truncationRate'),
    p50Ms: mean('p50Ms'),
    p95Ms: Math.max(a.p95Ms, b.p95Ms),
    outputBytes: a.outputBytes + b.outputBytes,
  }
}

const SAMPLE = /^([A-Za-z_:][\w:]*)(\{.*\})? (.+)$/
const ABOUT = /^# (?:HELP|TYPE) (\S+)/

/**
 * Samples get the label `replica`, and those of one metric stand together, as the format demands.
 * Undefined: none has answered.
 */
export function mergeMetrics(all: readonly Answered<AgentMetricsAnswer>[]): AgentMetricsAnswer | undefined {
  const [first] = all
  if (first === undefined) return undefined
  const families = new Map<string, { about: Set<string>; samples: string[] }>()
  for (const { replica, answer } of all) {
    let family = ''
    for (const line of answer.text.split('\n')) {
      family = ABOUT.exec(line)?.[1] ?? family
      const lines = families.get(family) ?? { about: new Set(), samples: [] }
      families.set(family, lines)
      if (line.startsWith('#')) lines.about.add(line)
      else if (line !== '') lines.samples.push(withReplica(line, replica))
    }
  }
  const text = [...families.values()].flatMap(({ about, samples }) => [...about, ...samples]).join('\n')
  const delays = all.map(({ answer }) => answer.eventLoopDelayMs)
  const most = (of: 'p50' | 'p99' | 'max'): number => Math.max(...delays.map((delay) => delay[of]))
  return { text: `${text}\n`, eventLoopDelayMs: { p50: most('p50'), p99: most('p99'), max: most('max') } }
}

function withReplica(sample: string, replica: string): string {
  const [, name = '', labels, rest = ''] = SAMPLE.exec(sample) ?? []
  if (name === '') return sample
  const label = `replica=${JSON.stringify(replica)}`
  return labels === undefined || labels === '{}'
    ? `${name}{${label}} ${rest}`
    : `${name}{${label},${labels.slice(1)} ${rest}`
}
