/**
 * Sandlot's processes from their start to their end, after everything that they need was prepared.
 */
import { join } from 'node:path'
import type { Readiness } from '@sandlot/shared/account/api'
import type { ChildName } from '../processes/child-env.ts'
import { childSpec, labelOf, logOf, recordFile } from '../processes/children.ts'
import type { Context } from '../context.ts'
import { buildFullImage, forgetFullImage } from '../setup/full-image.ts'
import { needsGate, waitForGate } from '../deployment/gate.ts'
import { recordWriter, type UpRecord } from '../processes/pid-file.ts'
import { signalProcess } from '../processes/process-mark.ts'
import { replicaNumbers, serviceUrls } from '../deployment/replicas.ts'
import { run } from '../programs/run.ts'
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
/**
 * ai-agent ends prompts and stops sandboxes in this time; the service has only connections to
 * close.
 */
const AGENT_GRACE_MS = 60_000
const SERVICE_GRACE_MS = 10_000
/** What a backup left that was ended in the middle is removed by the next one. */
const BACKUP_GRACE_MS = 2_000
/** Lines of output shown for a process that ended at its start. */
const DETAIL_LINES = 12
const READY_LINE = 'Sandlot is ready: '

/** By their labels. */
type Children = Map<string, { name: ChildName; child: Supervised }>

export async function runUntilStopped(
  context: Context,
  record: UpRecord,
  stop: ReturnType<typeof listenForStop>,
): Promise<number> {
  const { config, steps, print } = context
  const children: Children = new Map()
  const numbers = replicaNumbers(record.replicas ?? 1)
  let readyLine: string | undefined
  let isUp = false
  const complaints = new Map<string, string[]>()
  const records = recordWriter(recordFile(config), (text) => steps.note(`! ${text}`))

  const start = (name: ChildName, number?: number): Supervised => {
    const label = labelOf(name, number)
    const said: string[] = []
    complaints.set(label, said)
    const child = supervise(childSpec(name, config, number), {
      started(mark) {
        record.children[label] = mark
        records.write(record)
      },
      said(line) {
        const isReady = line.startsWith(READY_LINE)
        // Of several the address of the first one.
        if (isReady && number === numbers[0]) readyLine = line
        if (!isReady && line.trim() !== '') steps.note(line)
      },
      problem(text) {
        if (isUp) steps.note(`! ${label}: ${text}`)
        else said.push(text)
      },
      died(end, delayMs) {
        if (isUp)
          steps.note(
            `! ${label} ended unexpectedly (${end}); starting it again in ${delayMs / 1000} s. Its log: ${logOf(name, config, number)}`,
          )
      },
    })
    children.set(label, { name, child })
    return child
  }

  const stopAll = (signal: StopSignal): Promise<void> => stopChildren(children, signal, context)
  stop.onImpatience(() => {
    steps.note('Ending at once. Sandboxes that still run are stopped by ./sandlot down --end.')
    for (const mark of Object.values(record.children)) signalProcess(mark, 'SIGKILL', true)
  })
  forgetFullImage(config)
  try {
    const ready = await steps.run('Start', async () => {
      // Aborted at the end: a pending wait would keep the launcher until its time-out.
      using waiting = abortedAtEnd(stop.signal)
      const startOrFail = (name: ChildName, number?: number): Promise<undefined> =>
        start(name, number).firstDeath.then((end) => {
          if (isUp) return undefined
          const label = labelOf(name, number)
          throw new StepError(
            `${label} ended at its start (${end}).`,
            `What it said is above; all of it is in ${logOf(name, config, number)}`,
            {
              details: complaints.get(label)?.slice(-DETAIL_LINES).join('\n'),
            },
          )
        })
      const gate = needsGate(config) ? startOrFail('engine-gate') : undefined
      if (gate !== undefined) await Promise.race([waitForGate(config, waiting.signal), gate])
      const deaths = [
        ...(gate === undefined ? [] : [gate]),
        ...numbers.map((number) => startOrFail('ai-agent', number)),
        ...numbers.map((number) => startOrFail('service', number)),
      ]
      const answers = Promise.all(
        serviceUrls(record.url, numbers.length).map(async (url, place) => {
          const answer = await waitUntilReady(url, context, waiting.signal)
          if (answer !== undefined) return answer
          throw new StepError(
            `Nothing answered at ${url}/readyz within ${READY_MS / 1000} seconds.`,
            `Look at ${logOf('service', config, numbers[place])}`,
          )
        }),
      )
      const [answer] = (await Promise.race([answers, ...deaths])) ?? []
      if (answer === undefined) throw new Error('no service was started')
      return answer
    })
    isUp = true
    for (const reason of ready.reasons) {
      if (!reason.ok) steps.note(`! ${reason.part}: ${reason.message}`)
    }
    print(readyLine ?? `${READY_LINE}${record.url}`)
    if (numbers.length > 1)
      print(
        `${numbers.length} agents, and ${numbers.length} services at ${serviceUrls(record.url, numbers.length).join(' ')}`,
      )
    if (config.backups.scheduled) start('backup')
    const building = buildFullImage(config, steps, stop.signal)
    const signal = await stop.requested
    print('')
    // What agents could not stop is stopped by `down`, which knows whether others use the engine.
    await Promise.all([stopAll(signal), building])
    return 0
  } catch (error) {
    await stopAll(stop.signal.aborted ? await stop.requested : 'SIGTERM')
    throw error
  }
}

/** The last answer within {@link READY_MS}; undefined without one. */
async function waitUntilReady(
  url: string,
  { config }: Pick<Context, 'config'>,
  signal: AbortSignal,
): Promise<Readiness | undefined> {
  const program = join(config.root, 'packages', 'cli', 'dist', 'supervisor', 'wait-until-ready.js')
  const printed = await run(process.execPath, [program, url, String(READY_MS)], {
    cwd: config.root,
    environment: {},
    fix: `Look at ${logOf('service', config)}`,
    signal,
  })
  return printed === '' ? undefined : (JSON.parse(printed) as Readiness)
}

/**
 * End them all. SIGINT to ai-agent ends the running prompts and stops the sandboxes; SIGTERM leaves
 * both to the next start. The service ends after it, so that browsers still get the ends of their
 * prompts.
 */
async function stopChildren(
  children: Children,
  signal: StopSignal,
  { steps }: Pick<Context, 'steps'>,
): Promise<void> {
  const title =
    signal === END_SIGNAL
      ? 'Stopping: ending prompts, stopping sandboxes (workspaces are kept)'
      : 'Stopping: prompts go on at the next start (./sandlot down --end ends them)'
  await steps.run(title, async () => {
    const end = async (name: ChildName, by: NodeJS.Signals, graceMs: number): Promise<void> => {
      const all = [...children.values()].filter((each) => each.name === name)
      await Promise.all(all.map(({ child }) => child.stop(by, graceMs)))
    }
    await end('backup', 'SIGTERM', BACKUP_GRACE_MS)
    await end('ai-agent', agentSignal(signal), AGENT_GRACE_MS)
    await end('service', 'SIGTERM', SERVICE_GRACE_MS)
    // Last of all: through it the agents have stopped their sandboxes.
    await end('engine-gate', 'SIGTERM', SERVICE_GRACE_MS)
  })
}
