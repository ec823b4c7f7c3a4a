import type { CommandExit, RunningCommand, RunRequest, Sandbox } from '../../src/sandbox.ts'
import { newId } from './harness.ts'

/** A person in front of a terminal: types, and waits for what is to be seen. */
export interface Screen {
  command: RunningCommand
  /** Everything that was shown so far, with its control characters. */
  text(): string
  type(keys: string): Promise<void>
  /**
   * Resolves when this was shown behind what the last `sees` was about. Rejects when the command
   * ends first.
   */
  sees(text: string): Promise<void>
  /** Reads to the end. */
  end(): Promise<CommandExit>
}

/** Start a command in a terminal and watch it. Needs `terminal`. */
export async function openScreen(
  sandbox: Sandbox,
  request: Partial<RunRequest> & Pick<RunRequest, 'command' | 'terminal'>,
): Promise<Screen> {
  const command = await sandbox.run({ id: newId(), autoAcknowledge: true, ...request })
  const decoder = new TextDecoder()
  const output = command.output[Symbol.asyncIterator]()
  let shown = ''
  let looked = 0
  const more = async (): Promise<boolean> => {
    const next = await output.next()
    if (next.done) return false
    shown += decoder.decode(next.value.data, { stream: true })
    return true
  }
  return {
    command,
    text: () => shown,
    type: (keys) => command.writeStdin(Buffer.from(keys)),
    async sees(text) {
      for (;;) {
        const at = shown.indexOf(text, looked)
        if (at !== -1) {
          looked = at + text.length
          return
        }
        if (!(await more()))
          throw new Error(
            `The command ended without showing ${JSON.stringify(text)}, but: ${JSON.stringify(shown.slice(-2_000))}`,
          )
      }
    },
    async end() {
      while (await more());
      return command.exit
    },
  }
}
