/**
 * How a tool says what arguments it takes: as zod, for our own, or as a JSON Schema that somebody
 * else wrote.
 */
import { z } from 'zod'

export interface JsonSchemaInput {
  /** What the model gets: a JSON Schema of type `object` that every provider takes. */
  readonly parameters: Record<string, unknown>
  /**
   * What does not fit, one line each; empty when everything does. Bounded in time and length. Never
   * throws.
   */
  check(args: Record<string, unknown>): string[]
}

export type ToolInput = z.ZodObject | JsonSchemaInput

export function isZodInput(input: ToolInput): input is z.ZodObject {
  return input instanceof z.ZodObject
}

/** The names of the arguments, in the order of their declaration. */
export function argumentNames(input: ToolInput): string[] {
  return isZodInput(input) ? Object.keys(input.shape) : Object.keys(propertiesOf(input.parameters))
}

/** The schemas of a JSON Schema's own properties; empty when it declares none. */
export function propertiesOf(schema: Record<string, unknown>): Record<string, unknown> {
  const { properties } = schema
  return typeof properties === 'object' && properties !== null && !Array.isArray(properties)
    ? { ...properties }
    : {}
}
