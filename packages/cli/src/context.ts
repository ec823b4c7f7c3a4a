import type { CliConfig } from './config.ts'
import type { Steps } from './steps.ts'

export interface Context {
  config: CliConfig
  args: string[]
  /** Printed on stdout, or on stderr for a command whose stdout is data. */
  steps: Steps
  /** Prints one line on stdout. */
  print: (line: string) => void
}

/** Returns the exit code. */
export type Command = (context: Context) => Promise<number>
