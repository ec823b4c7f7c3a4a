import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { z } from 'zod'
import { childEnvironment } from '../child-env.ts'
import type { Command } from '../context.ts'
import { run } from '../run.ts'
import { StepError } from '../steps.ts'

const rotated = z.object({ resealed: z.int(), lost: z.array(z.string()) })

/** `keys rotate`: a new key for the secrets that people keep here; every one of them is sealed again. */
export const keys: Command = async ({ config, args, print }) => {
  if (args.length !== 1 || args[0] !== 'rotate') {
    print('Usage: ./sandlot keys rotate')
    return 2
  }
  const program = join(config.root, 'packages', 'ai-agent', 'dist', 'key-admin.js')
  if (!existsSync(program))
    throw new StepError('Sandlot has not been built yet.', 'Run ./sandlot up once; it builds what is needed.')
  const printed = await run(process.execPath, ['--enable-source-maps', program, 'rotate'], {
    cwd: config.root,
    environment: childEnvironment('ai-agent', config.environment),
    log: join(config.data, 'log', 'keys.log'),
    fix: 'Nothing is lost: whatever was done so far stands. Run the same command again.',
  })
  const { resealed, lost } = rotated.parse(JSON.parse(printed))
  print(`The key is new; ${resealed} secret${resealed === 1 ? ' was' : 's were'} sealed with it.`)
  for (const name of lost)
    print(`${name} cannot be opened with any key that is here. It has to be set again.`)
  return lost.length === 0 ? 0 : 1
}
