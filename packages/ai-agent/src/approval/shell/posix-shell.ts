/**
 * Where `sh` reads a text otherwise than bash, as which we read everything: in a Debian `[[ a > b ]]` is a program and a
 * redirection for it, and `$'\'` ends where bash goes on.
 */

const ONLY_IN_BASH = [
  // Quoting of its own, and what computes.
  /\$["'[]/,
  /\[\[/,
  /(?<!\$)\(\(/,
  /[<>]\(/,
  /<<</,
  /&>|\|&/,
  // Quotes within braces or backquotes, where the rules differ.
  /\$\{[^}]*["'\\`$]/,
  /`[^`]*[\\"']/,
]

/** True when nothing in it is known to be read otherwise. */
export function readsAlike(script: string): boolean {
  return !ONLY_IN_BASH.some((form) => form.test(script))
}
