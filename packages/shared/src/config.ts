/**
 * Configuration of a process from its environment, by the rows of `config/settings.ts`: every
 * problem is reported at once, each with the variable's name. `NAME_FILE` names a file with the
 * value of `NAME` (for Docker secrets); the file reader is a parameter, because this package also
 * runs in browsers.
 */
import { z } from 'zod'
import { settingNameProblems } from './config/names.ts'
import type { ProcessName, SettingSchema } from './config/setting.ts'
import { type SettingValues, SETTINGS, settingMeaning, settingNames } from './config/settings.ts'
import type { SettingRow } from './admin/configuration.ts'

export type Environment = Record<string, string | undefined>

export class ConfigError extends Error {
  override readonly name = 'ConfigError'
  readonly problems: string[]
  constructor(problems: string[]) {
    super(
      `Sandlot cannot start with this configuration:\n${problems.map((problem) => `  - ${problem}`).join('\n')}`,
    )
    this.problems = problems
  }
}

/** A whole number in a range, in decimal digits. */
export function wholeNumber(min: number, max: number): z.ZodType<number, string> {
  return z
    .string()
    .regex(/^\d+$/, 'must be a whole number')
    .transform(Number)
    .pipe(z.number().min(min, `must be at least ${min}`).max(max, `must be at most ${max}`))
}

const siteUrl = z.url({
  protocol: /^https?$/,
  error: 'must be an address like https://chat.example.org',
  abort: true,
})

/** The origin of an address, whatever follows the host and the port. */
export const originOf = siteUrl.transform((text) => new URL(text).origin)

/** The address of a site: no path, and no user, question mark or hash. Read as its origin. */
const originUrl = siteUrl
  .refine((text) => {
    const { origin, href } = new URL(text)
    return href === `${origin}/`
  }, 'must end after the host and the port: Sandlot is at the root of its host')
  .transform((text) => new URL(text).origin)

/** `true`/`false`, `1`/`0`, `yes`/`no`, `on`/`off` in any case. */
const flag = z.stringbool()

function zodOf(schema: SettingSchema): z.ZodType<unknown, string> {
  switch (schema.kind) {
    case 'text':
      return schema.pattern === undefined ? z.string() : z.string().regex(schema.pattern, schema.error)
    case 'url':
      return z.url({ protocol: schema.protocol, error: schema.error })
    case 'origin':
      return originUrl
    case 'whole': {
      const { from, to, or } = schema
      const number = wholeNumber(from, to)
      return or === undefined
        ? number
        : z.union([z.literal(or), number], `must be ${or}, or a number ${from}–${to}`)
    }
    case 'decimal':
      return z
        .string()
        .regex(/^(\d+(\.\d*)?|\.\d+)$/, `must be a number like ${schema.example}`)
        .transform(Number)
        .pipe(
          z
            .number()
            .min(schema.from, `must be at least ${schema.from}`)
            .max(schema.to, `must be at most ${schema.to}`),
        )
    case 'flag':
      return flag
    case 'choice':
      return z.enum(schema.of)
  }
}

type SettingShape<P extends ProcessName> = {
  [N in keyof SettingValues<P>]: z.ZodType<SettingValues<P>[N]>
}

/**
 * Schema of the settings of `process`, for `readConfig`. It may be extended where a value needs
 * more than its row says.
 */
export function settingSchema<P extends ProcessName>(process: P): z.ZodObject<SettingShape<P>>
export function settingSchema(process: ProcessName): z.ZodObject {
  const shape = Object.fromEntries(
    settingNames(process).map((name) => {
      const { schema, default: preset } = SETTINGS[name] ?? { schema: { kind: 'text' } }
      const zod = zodOf(schema)
      return [name, preset === undefined ? zod.optional() : zod.prefault(preset)]
    }),
  )
  return z.object(shape)
}

/**
 * Parse `env` by `schema`, whose keys are variable names. An empty value counts as not set. @throws
 * ConfigError with every problem, including unknown `SANDLOT_*` names.
 */
export function readConfig<S extends z.ZodObject>(
  schema: S,
  env: Environment,
  readFile: (path: string) => string,
): z.infer<S> {
  const problems = settingNameProblems(env)
  const values: Record<string, string> = {}
  for (const name of Object.keys(schema.shape)) {
    const value = env[name]
    const file = env[`${name}_FILE`]
    if (value !== undefined && value !== '') values[name] = value
    if (file === undefined || file === '') continue
    if (values[name] !== undefined) {
      problems.push(`${name} and ${name}_FILE are both set; keep one`)
      continue
    }
    try {
      values[name] = readFile(file).trimEnd()
    } catch (error) {
      problems.push(
        `${name}_FILE: cannot read ${file} (${error instanceof Error ? error.message : String(error)})`,
      )
    }
  }
  const parsed = schema.safeParse(values)
  if (!parsed.success) {
    for (const issue of parsed.error.issues) {
      const name = String(issue.path[0] ?? '')
      const hint = settingMeaning(name)
      problems.push(`${name}: ${issue.message}${hint === undefined ? '' : ` (${hint})`}`)
    }
  }
  if (problems.length > 0 || !parsed.success) throw new ConfigError(problems)
  return parsed.data
}

/**
 * Settings by `names` with their values in `env`, accepted by `readConfig` before, and their
 * sources; secrets are redacted, and internal ones left out. `beside`: another file of this
 * process, and the names from it.
 */
export function settingRows(
  names: readonly string[],
  env: Environment,
  beside?: { path: string; names: ReadonlySet<string> },
): SettingRow[] {
  const inEnvFile = new Set(env['SANDLOT_ENV_FILE_NAMES']?.split(','))
  const sourceOf = (name: string): Pick<SettingRow, 'source' | 'from'> =>
    beside?.names.has(name) === true
      ? { source: 'agent_env', from: beside.path }
      : { source: inEnvFile.has(name) ? 'env_file' : 'environment' }
  return names.flatMap((name): SettingRow[] => {
    const { secret = false, internal = false, default: preset = null } = SETTINGS[name] ?? {}
    if (internal) return []
    const about = { name, meaning: settingMeaning(name), restart: true }
    const text = env[name]
    const file = env[`${name}_FILE`]
    if (text !== undefined && text !== '')
      return [
        { ...about, value: secret ? null : withoutCredentials(text), redacted: secret, ...sourceOf(name) },
      ]
    if (file !== undefined && file !== '')
      return [{ ...about, value: null, redacted: true, source: 'value_file', from: file }]
    return [{ ...about, value: preset, redacted: false, source: 'default' }]
  })
}

/** A URL may contain a user and a password. */
function withoutCredentials(text: string): string {
  return text.replaceAll(/\/\/[^/@\s]+@/g, '//…@')
}
