import { ConfigError } from '@sandlot/shared/config'
import { COMMANDS, helpText } from './commands.ts'
import { loadCliConfig } from './config.ts'
import { createSteps, failureLines, ShownError, StepError } from './steps.ts'
import { StopRequest } from './stop-signals.ts'

/** Run one command of the command line. Answers the exit code; every failure has been shown by then. */
async function main([name = 'help', ...args]: string[]): Promise<number> {
  const out = (text: string): void => void process.stdout.write(text)
  const err = (text: string): void => void process.stderr.write(text)
  if (['help', '--help', '-h'].includes(name)) {
    out(helpText())
    return 0
  }
  const command = COMMANDS[name]
  if (command === undefined) {
    err(`There is no command "${name}".\n\n${helpText()}`)
    return 2
  }
  const onStdout = command.stdout !== 'data'
  const stream = onStdout ? process.stdout : process.stderr
  try {
    return await command.run({
      config: loadCliConfig(),
      args,
      steps: createSteps({ write: onStdout ? out : err, live: stream.isTTY }),
      print: (line) => out(`${line}\n`),
    })
  } catch (error) {
    return exitCodeOf(error, err)
  }
}

/** Show what was not shown yet, and say how this ends: 2 configuration, 130 and 143 asked to stop, 1 anything else. */
function exitCodeOf(error: unknown, write: (text: string) => void): number {
  const cause = error instanceof ShownError ? error.cause : error
  if (cause instanceof StopRequest) return cause.stop === 'SIGINT' ? 130 : 143
  if (error instanceof ShownError) return cause instanceof ConfigError ? 2 : 1
  if (cause instanceof ConfigError) {
    write(`${cause.message}\n`)
    return 2
  }
  if (cause instanceof StepError) write(`${failureLines(cause).join('\n')}\n`)
  else write(`${cause instanceof Error ? (cause.stack ?? cause.message) : String(cause)}\n`)
  return 1
}

// The reader may be gone (a closed terminal, `| head`): what is being ended must still end in order.
for (const stream of [process.stdout, process.stderr]) stream.on('error', () => {})

process.exitCode = await main(process.argv.slice(2))
