/** Write the generated documents: `node --conditions=sandlot-source test/write-docs.ts` after a change of the settings. */
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { envExample, settingsReference, withSettingsTable } from './configuration-docs.ts'
import { ROOT } from './source-files.ts'
import { toolReference } from './tool-docs.ts'

const readme = join(ROOT, 'README.md')
writeFileSync(readme, withSettingsTable(readFileSync(readme, 'utf8')))
writeFileSync(join(ROOT, 'docs/settings.md'), settingsReference())
writeFileSync(join(ROOT, '.env.example'), envExample())
writeFileSync(join(ROOT, 'docs/tools.md'), toolReference())
