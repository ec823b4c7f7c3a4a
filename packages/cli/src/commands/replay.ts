import { existsSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { childEnvironment } from '../processes/child-env.ts'
import type { Command } from '../context.ts'
import { isOnPostgres } from '../deployment/replicas.ts'
import { runInteractive } from '../programs/run-interactive.ts'
import { StepError } from '../steps.ts'

/**
 * `replay <file>`: make the requests of a recorded session again. `replay --record <session>
 * <file>`: record one.
 */
export const replay: Command = async ({ config, args }) => {
  const program = join(config.root, 'packages', 'ai-agent', 'dist', 'replay', 'program.js')
  if (!existsSync(program)) throw new StepError('Sandlot has not been built yet.', 'Run ./sandlot up once.')
  const [first, session, file] = args
  const recording = first === '--record'
  if (recording ? session === undefined || file === undefined : first === undefined || args.length > 1) {
    throw new StepError(
      'It takes a recording, or --record with a session and a file.',
      './sandlot replay <file>, or ./sandlot replay --record <session> <file>',
    )
  }
  const task = recording
    ? [
        'record',
        ...(isOnPostgres(config) ? [] : [join(config.data, 'sessions.db')]),
        session ?? '',
        resolve(file ?? ''),
      ]
    : ['play', resolve(first ?? '')]
  return runInteractive(process.execPath, [program, ...task], {
    cwd: config.root,
    // From a file it needs nothing of ours: no key, no engine.
    environment: recording && isOnPostgres(config) ? childEnvironment('ai-agent', config.environment) : {},
  })
}
