/** Numbers for people. All pure; times are epoch milliseconds. */

/** `31 ms`, `0.4 s`, `12 s`, `3 m 05 s`, `1 h 02 m`. */
export function formatDuration(ms: number): string {
  if (ms < 100) return `${Math.max(0, Math.round(ms))} ms`
  const seconds = ms / 1000
  if (seconds < 10) return `${(Math.floor(seconds * 10) / 10).toFixed(1)} s`
  if (seconds < 60) return `${Math.floor(seconds)} s`
  const minutes = Math.floor(seconds / 60)
  if (minutes < 60) return `${minutes} m ${String(Math.floor(seconds % 60)).padStart(2, '0')} s`
  return `${Math.floor(minutes / 60)} h ${String(minutes % 60).padStart(2, '0')} m`
}

/** `1 line`, `4,212 lines`. */
export function formatCount(count: number, one: string, many = `${one}s`): string {
  return `${count.toLocaleString('en')} ${count === 1 ? one : many}`
}

/** `3 Nov 2026`. */
export function formatDate(at: number): string {
  return new Date(at).toLocaleDateString('en-GB', { day: 'numeric', month: 'short', year: 'numeric' })
}

/** `3 Nov 2026, 14:05`. */
export function formatMoment(at: number): string {
  const time = new Date(at).toLocaleTimeString('en-GB', { hour: '2-digit', minute: '2-digit' })
  return `${formatDate(at)}, ${time}`
}

function daysBetween(at: number, now: number): number {
  const midnight = (epoch: number) => new Date(epoch).setHours(0, 0, 0, 0)
  return Math.round((midnight(now) - midnight(at)) / 86_400_000)
}

/** `14:05` today, `Yesterday`, `Mon`, `3 Nov`, `3 Nov 2025`. */
export function formatDay(at: number, now: number): string {
  const date = new Date(at)
  const days = daysBetween(at, now)
  if (days <= 0) return date.toLocaleTimeString('en-GB', { hour: '2-digit', minute: '2-digit' })
  if (days === 1) return 'Yesterday'
  if (days < 7) return date.toLocaleDateString('en-GB', { weekday: 'short' })
  if (date.getFullYear() !== new Date(now).getFullYear()) return formatDate(at)
  return date.toLocaleDateString('en-GB', { day: 'numeric', month: 'short' })
}

/** The heading a session stands under in the list. */
export function ageGroup(at: number, now: number): string {
  const days = daysBetween(at, now)
  if (days <= 0) return 'Today'
  if (days === 1) return 'Yesterday'
  if (days < 7) return 'Last 7 days'
  if (days < 30) return 'Last 30 days'
  return 'Older'
}
