/**
 * Configuration from an environment: one zod schema per package, every problem reported at once,
 * each with the variable's name. `NAME_FILE` names a file with the value of `NAME` (for Docker
 * secrets); the file reader is a parameter, because this package also runs in browsers.
 */
import { z } from 'zod'
import { CONFIG_NAMES, isSecretName, unknownConfigNames } from './config/names.ts'
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

/** `true`/`false`, `1`/`0`, `yes`/`no`, `on`/`off` in any case. */
export const flag = z.stringbool()

/** A whole number in a range, in decimal digits. */
export function wholeNumber(min: number, max: number): z.ZodType<number, string> {
  return z
    .string()
    .regex(/^\d+$/, 'must be a whole number')
    .transform(Number)
    .pipe(z.number().min(min, `must be at least ${min}`).max(max, `must be at most ${max}`))
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
  const problems = unknownConfigNames(env)
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
      const hint = CONFIG_NAMES[name]
      problems.push(`${name}: ${issue.message}${hint === undefined ? '' : ` (${hint})`}`)
    }
  }
  if (problems.length > 0 || !parsed.success) throw new ConfigError(problems)
  return parsed.data
}

/** The launcher's list of names from `.env`. */
const ENV_FILE_NAMES = 'SANDLOT_ENV_FILE_NAMES'

/**
 * Every setting of `schema` with its value in `env`, accepted by `readConfig` before, and its
 * source; secrets are redacted. `beside`: another file of this process, and the names from it.
 */
export function settingRows(
  schema: z.ZodObject,
  env: Environment,
  beside?: { path: string; names: ReadonlySet<string> },
): SettingRow[] {
  const inEnvFile = new Set(env[ENV_FILE_NAMES]?.split(','))
  const sourceOf = (name: string): Pick<SettingRow, 'source' | 'from'> =>
    beside?.names.has(name) === true
      ? { source: 'agent_env', from: beside.path }
      : { source: inEnvFile.has(name) ? 'env_file' : 'environment' }
  return Object.entries(schema.shape).map(([name, field]): SettingRow => {
    const text = env[name]
    const file = env[`${name}_FILE`]
    if (text !== undefined && text !== '') {
      const redacted = isSecretName(name)
      return {
        name,
        value: redacted ? null : withoutCredentials(text),
        redacted,
        ...sourceOf(name),
        restart: true,
      }
    }
    if (file !== undefined && file !== '')
      return { name, value: null, redacted: true, source: 'value_file', from: file, restart: true }
    const preset = (field as z.ZodType).safeParse(undefined).data
    return { name, value: shownDefault(preset), redacted: false, source: 'default', restart: true }
  })
}

/** A URL may contain a user and a password. */
function withoutCredentials(text: string): string {
  return text.replaceAll(/\/\/[^/@\s]+@/g, '//…@')
}

function shownDefault(value: unknown): string | null {
  if (typeof value === 'string') return value === '' ? null : value
  return typeof value === 'number' || typeof value === 'boolean' ? String(value) : null
}
