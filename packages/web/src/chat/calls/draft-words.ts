/** Readable text from arguments that are not complete yet. */

/**
 * The first text among them, which says what the call is about: a path, a command. Undefined before
 * it has begun.
 */
export function draftSubject(args: string): string | undefined {
  const begun = /^\s*\{\s*"[^"\\]*"\s*:\s*"((?:[^"\\]|\\.)*)/.exec(args)?.[1]
  const subject = begun === undefined ? '' : readable(begun).trim()
  return subject === '' ? undefined : subject
}

/** The last lines, with the escapes of JSON as what they stand for. */
export function draftTail(args: string, lines: number): string {
  return readable(args).split('\n').slice(-lines).join('\n')
}

const STANDS_FOR: Record<string, string> = { n: '\n', t: '\t', r: '', b: '', f: '' }

function readable(text: string): string {
  // The last escape may not be whole.
  return text
    .replace(/(?<!\\)((?:\\\\)*)\\(?:u[\da-f]{0,3})?$/i, '$1')
    .replace(/\\(?:u([\da-f]{4})|(.))/gi, (_, code: string | undefined, char: string | undefined) =>
      code === undefined
        ? (STANDS_FOR[char ?? ''] ?? char ?? '')
        : String.fromCharCode(Number.parseInt(code, 16)),
    )
}
