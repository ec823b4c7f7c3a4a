/** Every setting with where its value comes from: `GET /api/admin/configuration`. */
import { z } from 'zod'
import { agentUser } from '../account/agent-user.ts'

const settingRow = z.object({
  /** `SANDLOT_PORT`; of the configuration file the section: `rules`. */
  name: z.string(),
  /** For people. Null: not set, and there is no default. `redacted`: it is a secret. */
  value: z.string().nullable(),
  redacted: z.boolean(),
  /**
   * `environment`: of the process. `env_file`: a line of `.env`. `value_file`: what `NAME_FILE`
   * names. `agent_env`: `agent.env` beside the configuration file. `file`: the configuration file.
   * `page`: these settings.
   */
  source: z.enum(['environment', 'env_file', 'value_file', 'agent_env', 'file', 'default', 'page']),
  /** A file, where it comes from one that has a name. */
  from: z.string().optional(),
  /** Whether a change holds only from the next start on. */
  restart: z.boolean(),
})
export type SettingRow = z.infer<typeof settingRow>

/** Of what the service and the agent do not read themselves, as the launcher has them. */
export const otherSettings = z.array(
  z.object({
    process: z.enum(['engine-gate', 'backup', 'launcher']),
    settings: z.array(settingRow),
  }),
)
export type OtherSettings = z.infer<typeof otherSettings>

/** Of one process. */
export const processSettings = z.object({ settings: z.array(settingRow) })
export type ProcessSettings = z.infer<typeof processSettings>

export const configurationView = z.object({
  service: z.array(settingRow),
  /** Null: the agent does not answer. */
  agent: z.array(settingRow).nullable(),
  /** Null: the launcher did not say, as with compose. */
  others: otherSettings.nullable(),
})
export type ConfigurationView = z.infer<typeof configurationView>

/** `EXT.configuration`: answered with `ProcessSettings`. */
export const configurationParams = z.object({ user: agentUser })
