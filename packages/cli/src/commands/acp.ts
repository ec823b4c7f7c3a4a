import { systemPackages } from '../apt.ts'
import { childEnvironment } from '../child-env.ts'
import type { Command } from '../context.ts'
import { join } from 'node:path'
import { runInteractive } from '../run-interactive.ts'
import { setUp } from '../setup.ts'
import { listenForStop } from '../stop-signals.ts'

/** Speak ACP on stdin and stdout, for editors. What is being prepared is said on stderr: stdout is the protocol. */
export const acp: Command = async ({ config, args, steps }) => {
  {
    using stop = listenForStop()
    await setUp(config, steps, systemPackages(config, stop.signal), stop.signal)
  }
  const main = join(config.root, 'packages', 'ai-agent', 'dist', 'main.js')
  return runInteractive(process.execPath, ['--enable-source-maps', main, '--stdio', ...args], {
    cwd: config.root,
    environment: childEnvironment('ai-agent', config.environment),
  })
}
