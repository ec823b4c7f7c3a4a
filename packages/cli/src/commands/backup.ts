import { resolve } from 'node:path'
import { askPassphrase, backupProgram } from '../programs/backup-program.ts'
import type { Command } from '../context.ts'
import { requireDeployment } from '../deployment/deployment.ts'

export const backup: Command = async (context) => {
  const { config, args, steps, print } = context
  const [option, folder, ...rest] = args
  if (args.length > 0 && (option !== '--to' || folder === undefined || rest.length > 0)) {
    print('Usage: ./sandlot backup [--to DIR]')
    return 2
  }
  requireDeployment(config)
  const passphrase = await askPassphrase(context, { twice: true })
  const to = folder === undefined ? [] : ['--to', resolve(folder)]
  const { file, bytes, workspaces, leftOut } = await steps.run('Backup', (step) =>
    backupProgram(['backup', ...to], context, { passphrase, step }),
  )
  const mebibytes = Math.ceil(bytes / 1024 ** 2)
  print(`Wrote and verified ${file} (${mebibytes} MiB, ${workspaces} workspaces).`)
  print('Keep a copy on another machine, and store the passphrase separately.')
  for (const { name, message } of leftOut) print(`Left out: ${name}. ${message}`)
  return leftOut.length === 0 ? 0 : 1
}
