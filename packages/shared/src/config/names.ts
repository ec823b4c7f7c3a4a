/** Names of settings: what is refused at start, because a setting that is ignored is worse. */
import { REMOVED_SETTINGS } from './removed-settings.ts'
import { SETTINGS } from './settings.ts'

/** Edit distance; names are short. */
function distance(a: string, b: string): number {
  let row = Array.from({ length: b.length + 1 }, (_, i) => i)
  for (let i = 1; i <= a.length; i++) {
    const next = [i]
    for (let j = 1; j <= b.length; j++) {
      const same = a[i - 1] === b[j - 1] ? 0 : 1
      next.push(Math.min((row[j] ?? 0) + 1, (next[j - 1] ?? 0) + 1, (row[j - 1] ?? 0) + same))
    }
    row = next
  }
  return row[b.length] ?? 0
}

/** The known text nearest to `wrong`, if it is near enough to be a misspelling. */
export function nearest(wrong: string, known: Iterable<string>): string | undefined {
  let best: { name: string; far: number } | undefined
  for (const name of known) {
    const far = distance(wrong.toLowerCase(), name.toLowerCase())
    if (best === undefined || far < best.far) best = { name, far }
  }
  return best !== undefined && best.far <= Math.max(2, Math.floor(wrong.length / 4)) ? best.name : undefined
}

/**
 * One sentence for each `SANDLOT_*` name in `env` that is not, or no longer, a setting, and for
 * each line of `.env` that Sandlot sets itself. `NAME_FILE` counts as the name with its value in a
 * file.
 */
export function settingNameProblems(env: Record<string, string | undefined>): string[] {
  const unknown = Object.keys(env)
    .filter((name) => name.startsWith('SANDLOT_') && !(name in SETTINGS || withoutFile(name) in SETTINGS))
    .flatMap((name) => {
      const removed = REMOVED_SETTINGS[withoutFile(name)]
      // Compose passes an empty value for one that is not set.
      if (removed !== undefined)
        return env[name] === '' ? [] : [`${name} is no longer a setting: it ${removed}`]
      const meant = nearest(withoutFile(name), Object.keys(SETTINGS))
      return `${name} is not a setting of Sandlot${meant === undefined ? '' : `; did you mean ${meant}?`}`
    })
  const internal = (env['SANDLOT_ENV_FILE_NAMES'] ?? '')
    .split(',')
    .filter((name) => SETTINGS[withoutFile(name)]?.internal === true)
    .map((name) => `${name}: remove it from .env; up and compose set it where it is needed`)
  return [...unknown, ...internal]
}

function withoutFile(name: string): string {
  return name.replace(/_FILE$/, '')
}
