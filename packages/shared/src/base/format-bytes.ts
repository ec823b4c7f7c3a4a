const UNITS = ['B', 'KiB', 'MiB', 'GiB', 'TiB'] as const

/** A size for people, in the units of limits: `812 B`, `1.4 KiB`, `2 GiB`. */
export function formatBytes(bytes: number): string {
  let value = bytes
  let unit = 0
  while (value >= 1024 && unit < UNITS.length - 1) {
    value /= 1024
    unit++
  }
  return `${value < 10 ? Number(value.toFixed(1)) : Math.round(value)} ${UNITS[unit] ?? 'B'}`
}
