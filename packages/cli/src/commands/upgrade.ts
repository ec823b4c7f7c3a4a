import { parseArgs } from 'node:util'
import type { Command } from '../context.ts'
import { requireDeployment } from '../deployment/deployment.ts'
import { findVersions } from '../upgrade/checkout.ts'
import { interruptedUpgrade, readJournal } from '../upgrade/journal.ts'
import { continueUpgrade, upgrade as runUpgrade } from '../upgrade/upgrade.ts'
import { StepError } from '../steps.ts'
import { SYSTEMD, stopUnit } from '../systemd/install-unit.ts'

const USAGE = 'Usage: ./sandlot upgrade [VERSION] [--from REPOSITORY] [--without-backup]'

/** Switches this clone to another version, and back if that does not become ready. */
export const upgrade: Command = async (context) => {
  const { config, args, steps, print } = context
  const asked = read(args)
  if (asked === undefined) {
    print(USAGE)
    return 2
  }
  requireDeployment(config)
  const left = interruptedUpgrade(config)
  if (left === undefined && readJournal(config.root) !== undefined)
    throw new StepError('An upgrade of this clone is already running.', 'Wait until it has finished.')
  if (left !== undefined) {
    const code = await continueUpgrade(context, left)
    if (code !== undefined) return code
  }
  const versions = await steps.run('Find the new version', async (step) => {
    const found = await findVersions(config, asked)
    step.result(`${found.from.name} → ${found.to.name}`)
    return found
  })
  const startUnit = await stopUnit(context, SYSTEMD)
  try {
    return await runUpgrade(context, versions, asked)
  } finally {
    await startUnit?.()
  }
}

function read(args: string[]): { version?: string; repository?: string; withBackup: boolean } | undefined {
  try {
    const { values, positionals } = parseArgs({
      args,
      allowPositionals: true,
      options: { from: { type: 'string' }, 'without-backup': { type: 'boolean', default: false } },
    })
    const [version, ...rest] = positionals
    if (rest.length > 0 || version?.startsWith('-') === true) return undefined
    return { version, repository: values.from, withBackup: !values['without-backup'] }
  } catch {
    return undefined // an unknown option
  }
}
