/**
 * A server's text as users see it: without control characters, bidirectional overrides, and
 * invisible characters that a model reads (Unicode tags and the like).
 */

/** Line ends, tabs and joiners of letters and emoji stay. */
const UNSEEN =
  /(?![\n\t]|\u200C|\u200D|\uFE0E|\uFE0F)[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\p{Default_Ignorable_Code_Point}]/gu

export function visibleText(text: string): string {
  return text.toWellFormed().replaceAll(UNSEEN, '')
}

/**
 * The same for the titles and descriptions of a JSON Schema; the rest is for programs and stays.
 */
export function visibleSchema(schema: unknown): unknown {
  if (Array.isArray(schema)) return schema.map(visibleSchema)
  if (typeof schema !== 'object' || schema === null) return schema
  return Object.fromEntries(
    Object.entries(schema).map(([key, value]) => [
      key,
      (key === 'description' || key === 'title') && typeof value === 'string'
        ? visibleText(value)
        : visibleSchema(value),
    ]),
  )
}
