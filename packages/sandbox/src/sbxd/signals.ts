/** Linux numbers, whatever system the controller runs on. Index = number. */
const NAMES = [
  '',
  'SIGHUP',
  'SIGINT',
  'SIGQUIT',
  'SIGILL',
  'SIGTRAP',
  'SIGABRT',
  'SIGBUS',
  'SIGFPE',
  'SIGKILL',
  'SIGUSR1',
  'SIGSEGV',
  'SIGUSR2',
  'SIGPIPE',
  'SIGALRM',
  'SIGTERM',
  'SIGSTKFLT',
  'SIGCHLD',
  'SIGCONT',
  'SIGSTOP',
  'SIGTSTP',
  'SIGTTIN',
  'SIGTTOU',
  'SIGURG',
  'SIGXCPU',
  'SIGXFSZ',
  'SIGVTALRM',
  'SIGPROF',
  'SIGWINCH',
  'SIGIO',
  'SIGPWR',
  'SIGSYS',
]

/** `SIGTERM` → 15; undefined for a name that does not exist. */
export function signalNumber(name: string): number | undefined {
  const number = NAMES.indexOf(name)
  return number > 0 ? number : undefined
}

/** 15 → `SIGTERM`, 40 → `SIG40`. */
export function signalName(number: number): string {
  return NAMES[number] || `SIG${number}`
}
