/**
 * Form of a setting's row. Rows are data, without zod, because the supervising process loads them:
 * it passes to each process its own settings (`zodOf` in `config.ts` checks values).
 */

export const PROCESSES = ['launcher', 'engine-gate', 'ai-agent', 'service', 'backup'] as const
export type ProcessName = (typeof PROCESSES)[number]

/** Accepted texts, and the value that a process reads from them. */
export type SettingSchema =
  | { kind: 'text'; pattern?: RegExp; error?: string }
  | { kind: 'url'; protocol: RegExp; error: string }
  /** The address of a site; its path can only be `/`. */
  | { kind: 'origin' }
  /** In decimal digits; `or`: a word instead. */
  | { kind: 'whole'; from: number; to: number; or?: string }
  | { kind: 'decimal'; example: string; from: number; to: number }
  | { kind: 'flag' }
  /** `undocumented`: choices for tests. */
  | { kind: 'choice'; of: readonly string[]; undocumented?: readonly string[] }

export interface Setting {
  /** Purpose, without accepted values and the default, which are added. */
  meaning: string
  schema: SettingSchema
  /** Text of a line of `.env`. Absent: `undefined` is read, or `meaning` names the default. */
  default?: string | undefined
  /** Processes that read it; no other receives it. */
  processes: readonly ProcessName[]
  /** The value is, or contains, a secret: it is shown nowhere. */
  secret?: true
  /** Set by Sandlot itself or by tests: not documented, and refused in `.env`. */
  internal?: true
}

/** Rows of settings that these processes read: `row(meaning, schema, default)`. */
export function readBy<const Processes extends readonly ProcessName[]>(...processes: Processes) {
  function row<const Schema extends SettingSchema>(
    meaning: string,
    schema: Schema,
    preset: string,
  ): { meaning: string; schema: Schema; default: string; processes: Processes }
  function row<const Schema extends SettingSchema>(
    meaning: string,
    schema: Schema,
  ): { meaning: string; schema: Schema; processes: Processes }
  function row(meaning: string, schema: SettingSchema, preset?: string): Setting {
    return { meaning, schema, default: preset, processes }
  }
  return row
}

export const agent = readBy('ai-agent')
export const service = readBy('service')
export const launcher = readBy('launcher')

export function secret<Row extends Setting>(row: Row): Row & { secret: true } {
  return { ...row, secret: true }
}

export function internal<Row extends Setting>(row: Row): Row & { internal: true } {
  return { ...row, internal: true }
}

export const TEXT = { kind: 'text' } as const
export const ORIGIN = { kind: 'origin' } as const
export const FLAG = { kind: 'flag' } as const

export function matching(pattern: RegExp, error: string): { kind: 'text'; pattern: RegExp; error: string } {
  return { kind: 'text', pattern, error }
}

export function url(protocol: RegExp, error: string): { kind: 'url'; protocol: RegExp; error: string } {
  return { kind: 'url', protocol, error }
}

export function whole(from: number, to: number): { kind: 'whole'; from: number; to: number } {
  return { kind: 'whole', from, to }
}

export function decimal(
  example: string,
  from = 0,
  to = Number.MAX_VALUE,
): { kind: 'decimal'; example: string; from: number; to: number } {
  return { kind: 'decimal', example, from, to }
}

export function choice<const Of extends readonly string[]>(...of: Of): { kind: 'choice'; of: Of } {
  return { kind: 'choice', of }
}

/** Value that a process reads. */
export type ValueOf<S extends SettingSchema> = S extends { kind: 'choice'; of: readonly (infer Choice)[] }
  ? Choice
  : S extends { kind: 'whole'; or: infer Word }
    ? number | Word
    : S extends { kind: 'whole' | 'decimal' }
      ? number
      : S extends { kind: 'flag' }
        ? boolean
        : string

/** Largest upper limit that is part of a meaning; higher ones only exclude mistakes. */
const MOST_SHOWN = 500_000

/** Accepted values, meaning and default, as documents and errors have it. */
export function describeSetting({ meaning, schema, default: preset }: Setting): string {
  const values = acceptedValues(schema)
  return `${values === '' ? '' : `${values}; `}${meaning}${preset === undefined ? '' : ` (default ${preset})`}`
}

function acceptedValues(schema: SettingSchema): string {
  if (schema.kind === 'flag') return 'true | false'
  if (schema.kind === 'choice')
    return schema.of.filter((one) => schema.undocumented?.includes(one) !== true).join(' | ')
  if (schema.kind !== 'whole' || schema.to > MOST_SHOWN) return ''
  return `${schema.or === undefined ? '' : `${schema.or} | `}${schema.from}–${schema.to}`
}
