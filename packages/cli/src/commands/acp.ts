import { systemPackages } from '../setup/apt.ts'
import { childEnvironment } from '../processes/child-env.ts'
import { childSpec, environmentFor, logOf } from '../processes/children.ts'
import type { CliConfig } from '../config.ts'
import type { Command } from '../context.ts'
import { join } from 'node:path'
import { gateAnswers, needsGate, waitForGate } from '../deployment/gate.ts'
import { runInteractive } from '../programs/run-interactive.ts'
import { setUp } from '../setup/setup.ts'
import { StepError } from '../steps.ts'
import { abortedAtEnd, listenForStop } from '../processes/stop-signals.ts'
import { supervise } from '../processes/supervise.ts'

const GATE_MS = 30_000

/** Speaks ACP on stdin and stdout, for editors. Preparations are reported on stderr. */
export const acp: Command = async ({ config, args, steps }) => {
  {
    using stop = listenForStop()
    await setUp(config, steps, systemPackages(config, stop.signal), stop.signal)
  }
  const closeGate = await openGate(config, (line) => steps.note(line))
  const main = join(config.root, 'packages', 'ai-agent', 'dist', 'main.js')
  try {
    return await runInteractive(process.execPath, [main, '--stdio', ...args], {
      cwd: config.root,
      environment: childEnvironment('ai-agent', environmentFor('ai-agent', config)),
    })
  } finally {
    await closeGate()
  }
}

/**
 * Starts a gate unless a running Sandlot has one for this data. Returns the function that stops it.
 */
async function openGate(config: CliConfig, note: (line: string) => void): Promise<() => Promise<void>> {
  if (!needsGate(config) || (await gateAnswers(config))) return async () => {}
  const log = logOf('engine-gate', config)
  const gate = supervise(childSpec('engine-gate', config), {
    started: () => {},
    printed: note,
    problem: (text) => note(`! engine-gate: ${text}`),
    died: (end) => note(`! engine-gate exited (${end}); restarting it. Log: ${log}`),
  })
  const close = (): Promise<void> => gate.stop('SIGTERM', 5_000)
  using waiting = abortedAtEnd(AbortSignal.timeout(GATE_MS))
  try {
    await Promise.race([
      waitForGate(config, waiting.signal),
      gate.firstDeath.then((end) => {
        throw new StepError(`engine-gate exited during startup (${end}).`, `See ${log}.`)
      }),
    ])
  } catch (error) {
    await close()
    throw error
  }
  return close
}
