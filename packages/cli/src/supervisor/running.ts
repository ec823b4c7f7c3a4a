/** Starts, supervises and stops Sandlot's processes, after the preparations. */
import { join } from 'node:path'
import type { Readiness } from '@sandlot/shared/account/api'
import type { ChildName } from '../processes/child-env.ts'
import { childSpec, labelOf, logOf, recordFile } from '../processes/children.ts'
import type { Context } from '../context.ts'
import { buildFullImage, clearFullImageState } from '../setup/full-image.ts'
import { needsGate, waitForGate } from '../deployment/gate.ts'
import { recordWriter, type UpRecord } from '../processes/pid-file.ts'
import { signalProcess } from '../processes/process-mark.ts'
import { replicaNumbers, serviceUrls } from '../deployment/replicas.ts'
import { run as runProgram } from '../programs/run.ts'
import { StepError } from '../steps.ts'
import {
  abortedAtEnd,
  agentSignal,
  END_SIGNAL,
  type listenForStop,
  type StopSignal,
} from '../processes/stop-signals.ts'
import { supervise, type Supervised } from '../processes/supervise.ts'

const READY_MS = 60_000
/** Time for ai-agent to end prompts and stop sandboxes. */
const AGENT_GRACE_MS = 60_000
const SERVICE_GRACE_MS = 10_000
/** The next backup removes an interrupted one. */
const BACKUP_GRACE_MS = 2_000
/** Lines of output shown for a process that exits during startup. */
const DETAIL_LINES = 12
const READY_LINE = 'Sandlot is ready: '

interface Run {
  context: Context
  record: UpRecord
  records: ReturnType<typeof recordWriter>
  /** Numbers of the replicas. */
  numbers: readonly (number | undefined)[]
  /** By label. */
  children: Map<string, { name: ChildName; child: Supervised }>
  /** Problems during startup, by label. */
  problems: Map<string, string[]>
  isUp: boolean
  /** Printed by the service when it is ready. */
  readyLine: string | undefined
}

export async function runUntilStopped(
  context: Context,
  record: UpRecord,
  stop: ReturnType<typeof listenForStop>,
): Promise<number> {
  const { config, steps, print } = context
  const run: Run = {
    context,
    record,
    records: recordWriter(recordFile(config), (text) => steps.note(`! ${text}`)),
    numbers: replicaNumbers(record.replicas ?? 1),
    children: new Map(),
    problems: new Map(),
    isUp: false,
    readyLine: undefined,
  }
  stop.onImpatience(() => {
    steps.note('Killing all processes. Stop sandboxes that still run with ./sandlot down --end.')
    for (const mark of Object.values(record.children)) signalProcess(mark, 'SIGKILL', true)
  })
  clearFullImageState(config)
  try {
    const ready = await steps.run('Start', () => startAll(run, stop.signal))
    run.isUp = true
    for (const reason of ready.reasons) {
      if (!reason.ok) steps.note(`! ${reason.part}: ${reason.message}`)
    }
    print(run.readyLine ?? `${READY_LINE}${record.url}`)
    const { length } = run.numbers
    if (length > 1)
      print(`${length} agents, and ${length} services at ${serviceUrls(record.url, length).join(' ')}`)
    if (config.backups.scheduled) startChild(run, 'backup')
    const building = buildFullImage(config, steps, stop.signal)
    const signal = await stop.requested
    print('')
    // Sandboxes that agents could not stop are left to `down`, which checks for other agents.
    await Promise.all([stopChildren(run, signal), building])
    return 0
  } catch (error) {
    await stopChildren(run, stop.signal.aborted ? await stop.requested : 'SIGTERM')
    throw error
  }
}

/** Starts every process. Returns the answer of the first service. @throws StepError. */
async function startAll(run: Run, stop: AbortSignal): Promise<Readiness> {
  const { context, numbers, record } = run
  const { config } = context
  // A pending wait would keep the launcher running until its time limit.
  using waiting = abortedAtEnd(stop)
  const gate = needsGate(config) ? startOrFail(run, 'engine-gate') : undefined
  if (gate !== undefined) await Promise.race([waitForGate(config, waiting.signal), gate])
  const deaths = [
    ...(gate === undefined ? [] : [gate]),
    ...numbers.map((number) => startOrFail(run, 'ai-agent', number)),
    ...numbers.map((number) => startOrFail(run, 'service', number)),
  ]
  const answers = Promise.all(
    serviceUrls(record.url, numbers.length).map(async (url, place) => {
      const answer = await waitUntilReady(url, context, waiting.signal)
      if (answer !== undefined) return answer
      throw new StepError(
        `${url}/readyz did not answer within ${READY_MS / 1000} seconds.`,
        `See ${logOf('service', config, numbers[place])}.`,
      )
    }),
  )
  const [answer] = (await Promise.race([answers, ...deaths])) ?? []
  if (answer === undefined) throw new Error('no service was started')
  return answer
}

/** Starts a process. Rejects when it exits before Sandlot is ready. */
async function startOrFail(run: Run, name: ChildName, number?: number): Promise<undefined> {
  const end = await startChild(run, name, number).firstDeath
  if (run.isUp) return
  const label = labelOf(name, number)
  throw new StepError(
    `${label} exited during startup (${end}).`,
    `Its output is above; the full log is ${logOf(name, run.context.config, number)}`,
    { details: run.problems.get(label)?.slice(-DETAIL_LINES).join('\n') },
  )
}

function startChild(run: Run, name: ChildName, number?: number): Supervised {
  const { context, record, records, numbers } = run
  const { config, steps } = context
  const label = labelOf(name, number)
  const problems: string[] = []
  run.problems.set(label, problems)
  const child = supervise(childSpec(name, config, number), {
    started(mark) {
      record.children[label] = mark
      records.write(record)
    },
    printed(line) {
      const isReady = line.startsWith(READY_LINE)
      if (isReady && number === numbers[0]) run.readyLine = line
      if (!isReady && line.trim() !== '') steps.note(line)
    },
    problem(text) {
      if (run.isUp) steps.note(`! ${label}: ${text}`)
      else problems.push(text)
    },
    died(end, delayMs) {
      if (run.isUp)
        steps.note(
          `! ${label} exited unexpectedly (${end}); restarting in ${delayMs / 1000} s. Log: ${logOf(name, config, number)}`,
        )
    },
  })
  run.children.set(label, { name, child })
  return child
}

/** The last answer within {@link READY_MS}. */
async function waitUntilReady(
  url: string,
  { config }: Pick<Context, 'config'>,
  signal: AbortSignal,
): Promise<Readiness | undefined> {
  const program = join(config.root, 'packages', 'cli', 'dist', 'supervisor', 'wait-until-ready.js')
  const printed = await runProgram(process.execPath, [program, url, String(READY_MS)], {
    cwd: config.root,
    environment: {},
    fix: `See ${logOf('service', config)}.`,
    signal,
  })
  return printed === '' ? undefined : (JSON.parse(printed) as Readiness)
}

/**
 * Stops all processes. ai-agent stops before the service, so that browsers still receive the ends
 * of their prompts.
 */
async function stopChildren({ children, context: { steps } }: Run, signal: StopSignal): Promise<void> {
  const title =
    signal === END_SIGNAL
      ? 'Stopping: ending prompts, stopping sandboxes (workspaces are kept)'
      : 'Stopping: prompts resume at the next start (to end them: ./sandlot down --end)'
  await steps.run(title, async () => {
    const end = async (name: ChildName, by: NodeJS.Signals, graceMs: number): Promise<void> => {
      const all = [...children.values()].filter((each) => each.name === name)
      await Promise.all(all.map(({ child }) => child.stop(by, graceMs)))
    }
    await end('backup', 'SIGTERM', BACKUP_GRACE_MS)
    await end('ai-agent', agentSignal(signal), AGENT_GRACE_MS)
    await end('service', 'SIGTERM', SERVICE_GRACE_MS)
    // Stops last: agents stop their sandboxes through it.
    await end('engine-gate', 'SIGTERM', SERVICE_GRACE_MS)
  })
}
