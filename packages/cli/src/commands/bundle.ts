import { resolve } from 'node:path'
import { SANDBOX_IMAGE } from '@sandlot/sandbox/controller/images'
import { writeBundle } from '../bundle/write-bundle.ts'
import type { Command } from '../context.ts'

/** Images of our own processes, as the compose file makes them. */
const APP_IMAGE = 'sandlot/sandlot:latest'
const BACKUP_IMAGE = 'sandlot/backup:latest'

/** Writes one file with the images and the chart, for a cluster without a network. */
export const bundle: Command = async (context) => {
  const [file = 'sandlot-bundle.tar', ...rest] = context.args
  if (rest.length > 0 || file.startsWith('-')) {
    context.print('Usage: ./sandlot bundle [FILE]')
    return 2
  }
  const images = [APP_IMAGE, BACKUP_IMAGE, context.config.sandboxImage ?? SANDBOX_IMAGE]
  const references = await writeBundle(resolve(file), images, context)
  for (const reference of references) context.print(reference)
  context.print(`Wrote ${file}. Its README.md shows how to install from it.`)
  return 0
}
