/**
 * The supervisor, which replaces `up` after the preparations. To save memory, modules for startup
 * and shutdown run in other processes or load late: zod and `node:http` would be a third of it.
 */
import type { CliConfig } from '../config.ts'
import { recordFile } from '../processes/children.ts'
import { release, type UpRecord } from '../processes/pid-file.ts'
import { runUntilStopped } from './running.ts'
import { createSteps } from '../steps.ts'
import { listenForStop } from '../processes/stop-signals.ts'
import { inheritedEnvironment } from './config.ts'

/** Argument from `up`. */
interface Handed {
  config: Omit<CliConfig, 'environment'>
  record: UpRecord
}

async function main(handed: Handed): Promise<number> {
  const config: CliConfig = { ...handed.config, environment: inheritedEnvironment() }
  const { record } = handed
  const out = (text: string): void => void process.stdout.write(text)
  const steps = createSteps({ write: out, live: process.stdout.isTTY })
  using stop = listenForStop()
  try {
    return await runUntilStopped({ config, args: [], steps, print: (line) => out(`${line}\n`) }, record, stop)
  } catch (error) {
    const { exitCodeOf } = await import('../exit-code.ts')
    return exitCodeOf(error, (text) => void process.stderr.write(text))
  } finally {
    release(recordFile(config), record)
  }
}

// Without a listener, a closed terminal or `| head` would interrupt an orderly shutdown.
for (const stream of [process.stdout, process.stderr]) stream.on('error', () => {})

process.exitCode = await main(JSON.parse(process.argv[2] ?? '') as Handed)
