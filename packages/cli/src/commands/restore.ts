import { constants, copyFileSync, existsSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { askPassphrase, backupProgram } from '../programs/backup-program.ts'
import { runningRecord } from '../processes/children.ts'
import type { Command } from '../context.ts'
import { systemPackages } from '../setup/apt.ts'
import { setUp } from '../setup/setup.ts'
import { StepError } from '../steps.ts'
import { listenForStop } from '../processes/stop-signals.ts'

const UNAUTHENTICATED = '--unauthenticated'

/** Restores a backup into an empty data folder. */
export const restore: Command = async (context) => {
  const { config, args, steps, print } = context
  const unauthenticated = args.filter((arg) => arg === UNAUTHENTICATED)
  const [file, ...rest] = args.filter((arg) => arg !== UNAUTHENTICATED)
  if (file === undefined || rest.length > 0) {
    print('Usage: ./sandlot restore FILE [--unauthenticated]')
    return 2
  }
  if (runningRecord(config) !== undefined)
    throw new StepError(
      `Sandlot is running with ${config.data}; nothing was restored.`,
      'Stop it with ./sandlot down, set SANDLOT_DATA to an empty folder, then run this again.',
    )
  const passphrase = await askPassphrase(context, { twice: false })
  using stop = listenForStop()
  await setUp(config, steps, systemPackages(config, stop.signal), stop.signal)
  const { at, workspaces, leftOut, unproven, settings } = await steps.run('Restore', (step) =>
    backupProgram(['restore', resolve(file), ...unauthenticated], context, { passphrase, step }),
  )
  print(`Restored the backup of ${at}, with ${workspaces} workspaces. Start it: ./sandlot up`)
  if (leftOut.length > 0) print(`The backup was made without: ${leftOut.join(', ')}`)
  if (unproven !== undefined) print(unproven)
  if (settings !== undefined) {
    const own = join(config.root, '.env')
    if (existsSync(join(settings, '.env')) && !existsSync(own))
      copyFileSync(join(settings, '.env'), own, constants.COPYFILE_EXCL)
    print(`The restored settings are in ${settings}; compare them with those of this machine.`)
  }
  return 0
}
