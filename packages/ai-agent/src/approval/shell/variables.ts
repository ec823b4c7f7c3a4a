/** Which variables a command line may set without changing what its commands, or later ones, do. */

/** Read by programs, and harmless: language, time, colour, width, log level. */
const HARMLESS = new Set([
  'LANG',
  'LANGUAGE',
  'TZ',
  'CI',
  'COLUMNS',
  'LINES',
  'NO_COLOR',
  'FORCE_COLOR',
  'CLICOLOR',
  'CLICOLOR_FORCE',
  'NODE_ENV',
  'RUST_BACKTRACE',
  'RUST_LOG',
  'DEBIAN_FRONTEND',
  'PYTHONUNBUFFERED',
  'PYTHONDONTWRITEBYTECODE',
  'GIT_TERMINAL_PROMPT',
  'GIT_OPTIONAL_LOCKS',
])

/** Small letters, and yet read by programs. */
const READ_BY_PROGRAMS = /^(no_proxy|npm_|pnpm_|yarn_|histchars$|auto_resume$)|_proxy$/

/**
 * True when setting this variable cannot change which program runs or what it does: one of the harmless list to a plain
 * word, or a name in small letters, which a script uses for itself. Everything else is not known to be harmless: a language
 * with a path in it is a file of somebody's, and some programs evaluate what they are given. `value`: where it is known.
 */
export function isHarmlessSetting(name: string, value: string | undefined): boolean {
  if (HARMLESS.has(name) || /^LC_[A-Z]+$/.test(name)) return /^[\w.,:@+=-]*$/.test(valueOf(name, value))
  return /^[a-z_][a-z0-9_]*$/.test(name) && name !== '_' && !READ_BY_PROGRAMS.test(name)
}

/** What is not known is not plain. A time zone has slashes; one that begins with it is a file. */
function valueOf(name: string, value = ' '): string {
  return name === 'TZ' ? value.replaceAll(/(?<=\w)\//g, '') : value
}
