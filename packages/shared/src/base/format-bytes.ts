const UNITS = ['B', 'KiB', 'MiB', 'GiB', 'TiB'] as const

/** Of a size, for people: `812 B`, `1.4 KiB`, `2 GiB`. In the units that limits are set in. */
export function formatBytes(bytes: number): string {
  let value = bytes
  let unit = 0
  while (value >= 1024 && unit < UNITS.length - 1) {
    value /= 1024
    unit++
  }
  return `${value < 10 ? Number(value.toFixed(1)) : Math.round(value)} ${UNITS[unit] ?? 'B'}`
}
