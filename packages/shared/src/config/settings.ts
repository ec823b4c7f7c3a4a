/**
 * Every setting, one row each. From the rows come the configuration that a process reads, the
 * environment that it receives, the blocks of `compose.yaml`, `.env.example`, `docs/settings.md`
 * and the configuration page.
 */
import { AGENT_SETTINGS, LIMIT_SETTINGS } from './settings-agent.ts'
import { DEPLOYMENT_SETTINGS, SERVICE_SETTINGS } from './settings-deployment.ts'
import { SANDBOX_SETTINGS } from './settings-sandbox.ts'
import { type ProcessName, type Setting, type ValueOf, describeSetting } from './setting.ts'

const ROWS = {
  ...AGENT_SETTINGS,
  ...DEPLOYMENT_SETTINGS,
  ...LIMIT_SETTINGS,
  ...SANDBOX_SETTINGS,
  ...SERVICE_SETTINGS,
} as const

/** By name. */
export const SETTINGS: Readonly<Record<string, Setting>> = ROWS

type Rows = typeof ROWS
type SettingName = keyof Rows
type NameFor<P extends ProcessName> = {
  [N in SettingName]: P extends Rows[N]['processes'][number] ? N : never
}[SettingName]

/** Values that a process reads; undefined: neither set, nor is there a default. */
export type SettingValues<P extends ProcessName> = {
  [N in NameFor<P>]: ValueOf<Rows[N]['schema']> | (Rows[N] extends { default: string } ? never : undefined)
}

/** Names of the settings of one process. */
export function settingNames(process: ProcessName): string[] {
  return Object.keys(SETTINGS).filter((name) => SETTINGS[name]?.processes.includes(process) === true)
}

/** Text for people: accepted values, meaning and default. Undefined: not a setting. */
export function settingMeaning(name: string): string | undefined {
  const setting = SETTINGS[name]
  return setting === undefined ? undefined : describeSetting(setting)
}
