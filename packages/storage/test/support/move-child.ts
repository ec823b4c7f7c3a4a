/** Moves the files of one folder into a database, until it is done or killed: `<folder> <address>`. */
import { join } from 'node:path'
import { moveToPostgres } from '../../src/migrate/to-postgres.ts'

const [folder = '', url = ''] = process.argv.slice(2)
const moved = await moveToPostgres({
  files: { sessions: join(folder, 'sessions.db'), accounts: join(folder, 'accounts.db') },
  folder: join(folder, 'moving'),
  url,
  doing: (what) => void process.stdout.write(`${what}\n`),
})
process.stdout.write(`${JSON.stringify(moved)}\n`)
