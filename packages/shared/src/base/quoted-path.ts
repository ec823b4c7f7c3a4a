/**
 * Paths in the input of models and programs, quoted like git does, so that a name can neither
 * imitate something else nor hide.
 */

/**
 * Invisible characters, and those that move visible ones: members of a character class, for
 * JavaScript and for Perl (`ripgrep.ts`).
 */
export const HIDDEN_CLASSES = String.raw`\p{Cc}\p{Cf}\p{Zl}\p{Zp}\p{Default_Ignorable_Code_Point}`

const QUOTED = new RegExp(`["\\\\${HIDDEN_CLASSES}]`, 'u')
const ESCAPED = new RegExp(`["\\\\${HIDDEN_CLASSES}]`, 'gu')
const SHORT: Readonly<Record<string, string>> = {
  '"': String.raw`\"`,
  '\\': String.raw`\\`,
  '\n': String.raw`\n`,
  '\r': String.raw`\r`,
  '\t': String.raw`\t`,
}

/** `path` itself, or in double quotes with the bytes of invisible characters as `\ooo`. */
export function quotePath(path: string): string {
  return QUOTED.test(path) ? `"${path.replace(ESCAPED, (one) => SHORT[one] ?? octal(one))}"` : path
}

function octal(text: string): string {
  return [...new TextEncoder().encode(text)].map((byte) => `\\${byte.toString(8).padStart(3, '0')}`).join('')
}
