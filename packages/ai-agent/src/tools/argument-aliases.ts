/**
 * Names that models learnt from the tools of other agents (`file_path` for `path`). A tool accepts
 * them, and everything except the replay to the model has the true names.
 */
import { z } from 'zod'
import { isObject } from '../model/json.ts'
import type { ToolInput } from './tool-schema.ts'

const declared = new WeakMap<z.ZodType, ReadonlyMap<string, string>>()

/** Claude Code and Gemini CLI; opencode; Gemini CLI before 2026; Claude models on their own. */
export const FILE_ALIASES = {
  file_path: 'path',
  filePath: 'path',
  absolute_path: 'path',
  file: 'path',
} as const

/** Gemini CLI, and before 2026. */
export const DIRECTORY_ALIASES = { dir_path: 'path', directory: 'path' } as const

/** Claude Code: the id of a background command. */
export const JOB_ALIASES = { bash_id: 'id', shell_id: 'id', task_id: 'id' } as const

/**
 * `input` itself, with further names for its arguments: alias → true name. They are not in its
 * schema. A name of an argument cannot be an alias.
 */
export function withAliases<Input extends z.ZodObject>(
  input: Input,
  aliases: Readonly<Record<string, keyof Input['shape']>> & { [Name in keyof Input['shape']]?: never },
): Input {
  declared.set(input, new Map(Object.entries(aliases)))
  return input
}

/** The aliases in a call, by the path of the true name: `{"edits.0.old_text": "old_string"}`. */
export type WrittenNames = Readonly<Record<string, string>>

/**
 * The arguments under their true names, in the same order, and the aliases that were in them. A
 * problem, for the model, where an argument came under two names. Idempotent. Tools of servers have
 * no aliases.
 */
export function resolveAliases(
  input: ToolInput,
  given: Record<string, unknown>,
): { args: Record<string, unknown>; written?: WrittenNames } | { problem: string } {
  if (!(input instanceof z.ZodObject)) return { args: given }
  const found: Found = { written: {} }
  const args = resolveObject(input, given, [], found)
  if (found.problem !== undefined) return { problem: found.problem }
  return Object.keys(found.written).length === 0 ? { args: given } : { args, written: found.written }
}

interface Found {
  written: Record<string, string>
  /** The first. */
  problem?: string
}

function resolveObject(
  schema: z.ZodObject,
  given: Record<string, unknown>,
  path: readonly string[],
  found: Found,
): Record<string, unknown> {
  const aliases = declared.get(schema)
  const names = new Map<string, string>()
  const entries = Object.entries(given).map(([name, value]) => {
    const real = aliases?.get(name) ?? name
    const at = [...path, real]
    const other = names.get(real)
    if (other !== undefined)
      found.problem ??= `${[...path, other].join('.')} and ${name} are the same argument: give ${real} once.`
    names.set(real, name)
    if (real !== name) found.written[at.join('.')] = name
    return [real, resolveValue(schema.shape[real], value, at, found)]
  })
  return Object.fromEntries(entries) as Record<string, unknown>
}

function resolveValue(schema: unknown, value: unknown, path: readonly string[], found: Found): unknown {
  if (schema instanceof z.ZodOptional || schema instanceof z.ZodDefault)
    return resolveValue(schema.unwrap(), value, path, found)
  if (schema instanceof z.ZodArray && Array.isArray(value))
    return value.map((one, at) => resolveValue(schema.element, one, [...path, String(at)], found))
  return schema instanceof z.ZodObject && isObject(value) ? resolveObject(schema, value, path, found) : value
}

/** Undoes `resolveAliases`: the arguments as the model wrote them. */
export function asWritten(args: unknown, written: WrittenNames = {}): unknown {
  // Members before what has them, whose path is shorter.
  return Object.entries(written)
    .toSorted(([one], [other]) => other.length - one.length)
    .reduce((value, [path, alias]) => renamed(value, path.split('.'), alias), args)
}

function renamed(value: unknown, [name, ...rest]: readonly string[], alias: string): unknown {
  if (Array.isArray(value))
    return value.map((one: unknown, at) => (String(at) === name ? renamed(one, rest, alias) : one))
  if (!isObject(value)) return value
  return Object.fromEntries(
    Object.entries(value).map(([key, member]) => {
      if (key !== name) return [key, member]
      return rest.length === 0 ? [alias, member] : [key, renamed(member, rest, alias)]
    }),
  )
}
