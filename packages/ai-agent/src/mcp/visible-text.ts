/**
 * Words of a server as a person would read them: without controls, without what turns the order of a line around, and
 * without what is read by a model and seen by nobody (Unicode tags and the like).
 */

/** Line ends and tabs stay, and what joins letters and emoji. */
const UNSEEN =
  /(?![\n\t]|\u200C|\u200D|\uFE0E|\uFE0F)[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\p{Default_Ignorable_Code_Point}]/gu

export function visibleText(text: string): string {
  return text.toWellFormed().replaceAll(UNSEEN, '')
}

/** The same for everything that a JSON Schema says in words; the rest of it means something to programs and stays. */
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
