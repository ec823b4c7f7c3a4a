import { ConfigError } from '@sandlot/shared/config'
import { systemPackages } from '../apt.ts'
import type { ChildName } from '../child-env.ts'
import { childSpec, logOf, recordFile } from '../children.ts'
import type { Command, Context } from '../context.ts'
import { askEngine } from '../engine.ts'
import { buildFullImage, forgetFullImage } from '../full-image.ts'
import { needsGate, waitForGate } from '../gate.ts'
import { claim, recordWriter, release, type UpRecord } from '../pid-file.ts'
import { isRunning, ownMark, signalProcess, waitForEnd } from '../processes.ts'
import { checkPortIsFree, openableUrl, waitUntilReady } from '../ready.ts'
import { setUp } from '../setup.ts'
import { StepError } from '../steps.ts'
import { stopSandboxes } from '../stop-sandboxes.ts'
import { abortedAtEnd, agentSignal, END_SIGNAL, listenForStop, type StopSignal } from '../stop-signals.ts'
import { supervise, type Supervised } from '../supervise.ts'

const READY_MS = 60_000
/** ai-agent ends prompts and stops sandboxes in this time; the service has only connections to close. */
const AGENT_GRACE_MS = 60_000
const SERVICE_GRACE_MS = 10_000
/** Of what a process said before it ended at its start. */
const DETAIL_LINES = 12
const READY_LINE = 'Sandlot is ready: '

/** Everything needed to run, then run it, in the foreground, until Ctrl-C or `down`. */
export const up: Command = async (context) => {
  const { config, steps, print } = context
  const self = ownMark()
  const record: UpRecord = { up: self, url: openableUrl(config.host, config.port), children: {} }
  const claimed = claim(recordFile(config), record)
  if (claimed.kind === 'running') {
    const state =
      Object.keys(claimed.record.children).length === 0 ? 'is being started' : 'is already running'
    print(
      `Sandlot ${state}: ${claimed.record.url} (process ${claimed.record.up.pid}; ./sandlot down ends it)`,
    )
    return 0
  }
  using stop = listenForStop()
  try {
    if (claimed.previous !== undefined) await endOrphans(claimed.previous, context)
    await checkPortIsFree(config.host, config.port).catch((error: unknown) =>
      steps.run('Port', () => Promise.reject(error)),
    )
    await setUp(config, steps, systemPackages(config, stop.signal), stop.signal)
    return await runUntilStopped(context, record, stop)
  } finally {
    release(recordFile(config), record)
  }
}

/** What an `up` that was killed left running holds the port and the agent's lock: end it as a restart does. */
export async function endOrphans(previous: UpRecord, { steps }: Pick<Context, 'steps'>): Promise<void> {
  const orphans = Object.entries(previous.children).filter(([, mark]) => isRunning(mark))
  if (orphans.length === 0) return
  await steps.run(
    `Ending what an earlier run left: ${orphans.map(([name]) => name).join(', ')}`,
    async () => {
      for (const [, mark] of orphans) signalProcess(mark, 'SIGTERM')
      for (const [, mark] of orphans) {
        if (await waitForEnd(mark, AGENT_GRACE_MS)) continue
        signalProcess(mark, 'SIGKILL', true)
        await waitForEnd(mark, 5_000)
      }
    },
  )
}

/** Containers that still run though their agent ended: it was killed, or had no engine just then. */
export async function stopLeftSandboxes({ config, steps }: Pick<Context, 'config' | 'steps'>): Promise<void> {
  if (config.backend !== 'docker') return
  try {
    // Without an engine nothing of ours runs on it either.
    if ((await askEngine(config)) instanceof Error) return
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error
    steps.note(
      `! The engine cannot be asked whether sandboxes are left running: ${error.problems.join('; ')}`,
    )
    return
  }
  const left = await stopSandboxes(config)
  if (left > 0) steps.note(`Stopped ${left} sandboxes that an earlier run left; workspaces are kept.`)
}

async function runUntilStopped(
  context: Context,
  record: UpRecord,
  stop: ReturnType<typeof listenForStop>,
): Promise<number> {
  const { config, steps, print } = context
  const children = new Map<ChildName, Supervised>()
  let readyLine: string | undefined
  let isUp = false
  const complaints: Record<ChildName, string[]> = { 'engine-gate': [], 'ai-agent': [], service: [] }
  const records = recordWriter(recordFile(config), (text) => steps.note(`! ${text}`))

  const start = (name: ChildName): Supervised => {
    const child = supervise(childSpec(name, config), {
      started(mark) {
        record.children[name] = mark
        records.write(record)
      },
      said(line) {
        if (line.startsWith(READY_LINE)) readyLine = line
        else if (line.trim() !== '') steps.note(line)
      },
      problem(text) {
        if (isUp) steps.note(`! ${name}: ${text}`)
        else complaints[name].push(text)
      },
      died(end, delayMs) {
        if (isUp)
          steps.note(
            `! ${name} ended unexpectedly (${end}); starting it again in ${delayMs / 1000} s. Its log: ${logOf(name, config)}`,
          )
      },
    })
    children.set(name, child)
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
      // What still waits when a process has ended would keep the launcher until its time is over.
      using waiting = abortedAtEnd(stop.signal)
      const startOrFail = (name: ChildName): Promise<undefined> =>
        start(name).firstDeath.then((end) => {
          if (isUp) return undefined
          throw new StepError(
            `${name} ended at its start (${end}).`,
            `What it said is above; all of it is in ${logOf(name, config)}`,
            {
              details: complaints[name].slice(-DETAIL_LINES).join('\n'),
            },
          )
        })
      const gate = needsGate(config) ? startOrFail('engine-gate') : undefined
      if (gate !== undefined) await Promise.race([waitForGate(config, waiting.signal), gate])
      const deaths = [...(gate === undefined ? [] : [gate]), startOrFail('ai-agent'), startOrFail('service')]
      const answer = await Promise.race([waitUntilReady(record.url, READY_MS, waiting.signal), ...deaths])
      if (answer === undefined) {
        throw new StepError(
          `Nothing answered at ${record.url}/readyz within ${READY_MS / 1000} seconds.`,
          `Look at ${logOf('service', config)}`,
        )
      }
      return answer
    })
    isUp = true
    for (const reason of ready.reasons) {
      if (!reason.ok) steps.note(`! ${reason.part}: ${reason.message}`)
    }
    print(readyLine ?? `${READY_LINE}${record.url}`)
    const building = buildFullImage(config, steps, stop.signal)
    const signal = await stop.requested
    print('')
    await Promise.all([stopAll(signal), building])
    if (signal === END_SIGNAL) await stopLeftSandboxes(context)
    return 0
  } catch (error) {
    await stopAll(stop.signal.aborted ? await stop.requested : 'SIGTERM')
    throw error
  }
}

/**
 * End them all. SIGINT to ai-agent ends the running prompts and stops the sandboxes; SIGTERM leaves both to the next
 * start. The service goes last, so that browsers still hear how their prompts ended.
 */
async function stopChildren(
  children: Map<ChildName, Supervised>,
  signal: StopSignal,
  { steps }: Pick<Context, 'steps'>,
): Promise<void> {
  const title =
    signal === END_SIGNAL
      ? 'Stopping: ending prompts, stopping sandboxes (workspaces are kept)'
      : 'Stopping: prompts go on at the next start (./sandlot down --end ends them)'
  await steps.run(title, async () => {
    await children.get('ai-agent')?.stop(agentSignal(signal), AGENT_GRACE_MS)
    await children.get('service')?.stop('SIGTERM', SERVICE_GRACE_MS)
    // Last of all: through it the agent has stopped its sandboxes.
    await children.get('engine-gate')?.stop('SIGTERM', SERVICE_GRACE_MS)
  })
}
