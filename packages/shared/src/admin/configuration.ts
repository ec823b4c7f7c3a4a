/** Every setting with the source of its value: `GET /api/admin/configuration`. */
import { z } from 'zod'
import { agentUser } from '../account/agent-user.ts'

const settingRow = z.object({
  /** `SANDLOT_PORT`; in the configuration file the section: `rules`. */
  name: z.string(),
  /** Display text. Null: not set, without a default. `redacted`: a secret. */
  value: z.string().nullable(),
  redacted: z.boolean(),
  /** Accepted values, purpose and default of a variable. */
  meaning: z.string().optional(),
  /**
   * `environment`: of the process. `env_file`: a line of `.env`. `value_file`: what `NAME_FILE`
   * names. `agent_env`: `agent.env` beside the configuration file. `file`: the configuration file.
   * `page`: these settings.
   */
  source: z.enum(['environment', 'env_file', 'value_file', 'agent_env', 'file', 'default', 'page']),
  /** The file's name, if the source has one. */
  from: z.string().optional(),
  /** True if a change requires a restart. */
  restart: z.boolean(),
})
export type SettingRow = z.infer<typeof settingRow>

/** Settings of other programs, as the launcher has them. */
export const otherSettings = z.array(
  z.object({
    process: z.enum(['engine-gate', 'backup', 'launcher']),
    settings: z.array(settingRow),
  }),
)
export type OtherSettings = z.infer<typeof otherSettings>

/** One process's settings. */
export const processSettings = z.object({ settings: z.array(settingRow) })
export type ProcessSettings = z.infer<typeof processSettings>

export const configurationView = z.object({
  service: z.array(settingRow),
  /** Null: the agent does not answer. */
  agent: z.array(settingRow).nullable(),
  /** Null: not known, for example with compose. */
  others: otherSettings.nullable(),
})
export type ConfigurationView = z.infer<typeof configurationView>

/** `EXT.configuration`: answered with `ProcessSettings`. */
export const configurationParams = z.object({ user: agentUser })
