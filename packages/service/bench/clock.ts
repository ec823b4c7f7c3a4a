/** Milliseconds of the machine's monotonic clock: the same in every process, unlike `performance.now()`. */
export function nowMs(): number {
  return Number(process.hrtime.bigint()) / 1e6
}
