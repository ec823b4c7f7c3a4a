/**
 * Structured configuration: one JSON file, `SANDLOT_CONFIG` (default `$SANDLOT_DATA/sandlot.json`,
 * which may be absent). Each section is declared next to the code that uses it and listed once
 * here. No setting stands both here and in the environment: the environment holds for all, the file
 * for one tool or model, and so it wins. The one exception is `SANDLOT_TOOLS_ENABLED=false`, which
 * switches off what `tools` offers. `users`, `teams` and `limits.users` are read once, as rows that
 * administrators change.
 */
import { readFileSync } from 'node:fs'
import { nearest } from '@sandlot/shared/config/names'
import { messageOf, hasCode } from '@sandlot/shared/base/errors'
import type { SettingRow } from '@sandlot/shared/admin/configuration'
import { z } from 'zod'
import { limitsSection } from '../limits/settings.ts'
import { mcpServersSection } from '../mcp/config.ts'
import { instructionsSection } from './instructions.ts'
import { toolsSection } from './tool-offer.ts'
import { teamsSection, usersSection } from './user-settings.ts'
import { rulesSection } from '../approval/config.ts'
import { modelsSection, pricesSection } from '../model/settings.ts'

/** All sections. Every one is optional: an empty file, like none, is a whole configuration. */
const configFile = z.strictObject({
  models: modelsSection.optional(),
  prices: pricesSection.optional(),
  limits: limitsSection.optional(),
  rules: rulesSection.optional(),
  tools: toolsSection.optional(),
  users: usersSection.optional(),
  teams: teamsSection.optional(),
  instructions: instructionsSection.optional(),
  mcpServers: mcpServersSection.optional(),
})
export type ConfigFile = z.output<typeof configFile>

const NO_SETTINGS: ConfigFile = configFile.parse({})

/**
 * Read the file at `path`. Each problem is a sentence with the file, the place in it and what to
 * write there; with any, the settings returned are those of an empty file. `required`: the operator
 * named the file, so it has to be there.
 */
export function readConfigFile(path: string, required: boolean, problems: string[]): ConfigFile {
  let text: string
  try {
    text = readFileSync(path, 'utf8')
  } catch (error) {
    const missing = hasCode(error, 'ENOENT')
    if (!missing || required) problems.push(`SANDLOT_CONFIG: cannot read ${path} (${messageOf(error)})`)
    return NO_SETTINGS
  }
  let value: unknown
  try {
    value = JSON.parse(text.replace(/^\uFEFF/, ''))
  } catch (error) {
    problems.push(`${path}: is not JSON (${messageOf(error)})`)
    return NO_SETTINGS
  }
  const read = configFile.safeParse(value)
  if (read.success) return read.data
  problems.push(...read.error.issues.flatMap((issue) => sentencesOf(path, issue)))
  return NO_SETTINGS
}

function sentencesOf(file: string, issue: z.core.$ZodIssue): string[] {
  const place = issue.path.map(String).join('.')
  if (issue.code !== 'unrecognized_keys')
    return [`${file}: ${place === '' ? '' : `${place}: `}${issue.message}`]
  return issue.keys.map((key) => {
    const name = place === '' ? key : `${place}.${key}`
    const meant = place === '' ? nearest(key, Object.keys(configFile.shape)) : undefined
    return `${file}: ${name} is not a setting of Sandlot${meant === undefined ? '' : `; did you mean ${meant}?`}`
  })
}

/** Those sections that the file has, for people: what stands in them is not repeated. */
export function sectionRows(file: ConfigFile, path: string): SettingRow[] {
  return Object.entries(file).flatMap(([name, section]): SettingRow[] => {
    if (section === undefined) return []
    const value = entriesOf(Object.keys(section).length)
    return [{ name, value, redacted: false, source: 'file', from: path, restart: true }]
  })
}

/** Rows that administrators edit on a page of the settings. */
export function pageRow(name: string, entries: number): SettingRow {
  return { name, value: entriesOf(entries), redacted: false, source: 'page', restart: false }
}

function entriesOf(count: number): string {
  return count === 1 ? '1 entry' : `${count} entries`
}
