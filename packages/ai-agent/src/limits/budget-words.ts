/** How limits are said, to people and to the model. */

export function notRun(why: string): string {
  return `The call was not started: ${why}.`
}

/** `3 calls`, `1 call`. */
export function counted(value: number, one: string): string {
  return `${number(value)} ${value === 1 ? one : `${one}s`}`
}

export function duration(ms: number): string {
  const seconds = Math.round(ms / 1_000)
  return seconds < 120 ? `${seconds} seconds` : `${Math.round(seconds / 60)} minutes`
}

export function number(value: number): string {
  return value.toLocaleString('en-US')
}

export function dollars(value: number): string {
  return `$${value.toLocaleString('en-US', { minimumFractionDigits: 2, maximumFractionDigits: 6 })}`
}
