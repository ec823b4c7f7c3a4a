import { COMMANDS, helpText } from './commands.ts'
import { loadCliConfig } from './config.ts'
import { exitCodeOf } from './exit-code.ts'
import { createSteps } from './steps.ts'

/** Runs one command. Returns the exit code; failures have been printed by then. */
async function main([name = 'help', ...args]: string[]): Promise<number> {
  const out = (text: string): void => void process.stdout.write(text)
  const err = (text: string): void => void process.stderr.write(text)
  if (['help', '--help', '-h'].includes(name)) {
    out(helpText())
    return 0
  }
  const command = COMMANDS[name]
  if (command === undefined) {
    err(`Unknown command "${name}".\n\n${helpText()}`)
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

// Without a listener, a closed terminal or `| head` would interrupt an orderly shutdown.
for (const stream of [process.stdout, process.stderr]) stream.on('error', () => {})

process.exitCode = await main(process.argv.slice(2))
