import type { CliConfig } from './config.ts'
import type { Steps } from './steps.ts'

/** Given to every command. */
export interface Context {
  config: CliConfig
  args: string[]
  /** Steps are shown on stdout, or on stderr for a command whose stdout is data. */
  steps: Steps
  /** One line on stdout. */
  print: (line: string) => void
}

/** Does its work and answers the exit code. */
export type Command = (context: Context) => Promise<number>
