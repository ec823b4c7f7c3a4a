import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { onTestFinished } from 'vitest'

/** The path of a configuration file with this text, which is there until the test is over. */
export function configFile(text: string): string {
  const folder = mkdtempSync(join(tmpdir(), 'sandlot-config-'))
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }))
  const path = join(folder, 'sandlot.json')
  writeFileSync(path, text)
  return path
}
