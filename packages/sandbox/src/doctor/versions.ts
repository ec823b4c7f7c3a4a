/** Known vulnerabilities of engines and runtimes. */
import { check, type Finding, unknown } from '#shared/base/finding'

interface Hole {
  id: string
  what: string
  /** Versions with the fix, one per release line. */
  fixed: readonly string[]
}

/**
 * Sources: the advisories by their numbers. Vulnerabilities of the archive API, builds, foreign
 * images or engine networks are omitted, because Sandlot uses none of these; docs/doctor.md lists
 * each with its reason.
 */
const ENGINE: readonly Hole[] = [
  { id: 'CVE-2019-14271', what: 'host code through docker cp', fixed: ['19.03.1'] },
  {
    id: 'CVE-2024-41110',
    what: 'authorization plugins passed by',
    fixed: ['23.0.15', '24.0.10', '25.0.6', '26.1.5', '27.1.1'],
  },
]
const RUNC: readonly Hole[] = [
  { id: 'CVE-2019-5736', what: 'runc overwritten from inside', fixed: ['1.0.0-rc7'] },
  { id: 'CVE-2024-21626', what: 'a leaked descriptor as working directory', fixed: ['1.1.12'] },
  {
    id: 'CVE-2025-31133, CVE-2025-52565, CVE-2025-52881',
    what: 'masked paths and /proc writes redirected',
    fixed: ['1.2.8', '1.3.3', '1.4.0-rc.3'],
  },
]

/** Numbers of a version, `-rc` before its release. Undefined for another text. */
function parse(version: string): number[] | undefined {
  const match = /^v?(\d+)\.(\d+)(?:\.(\d+))?(?:-?rc\.?(\d+))?/.exec(version)
  if (!match) return undefined
  const [, major, minor, patch, candidate] = match
  return [
    Number(major),
    Number(minor),
    Number(patch ?? 0),
    candidate === undefined ? Infinity : Number(candidate),
  ]
}

function compare(one: readonly number[], other: readonly number[]): number {
  for (const [place, number] of one.entries()) {
    const difference = number - (other[place] ?? 0)
    if (difference !== 0 && !Number.isNaN(difference)) return difference
  }
  return 0
}

/** True for a version at or above the fix of its own release line, or above every fixed line. */
export function hasFix(version: string, fixed: readonly string[]): boolean | undefined {
  const mine = parse(version)
  const fixes = fixed.map((text) => parse(text) ?? []).toSorted(compare)
  if (!mine) return undefined
  const sameLine = fixes.find(([major, minor]) => major === mine[0] && minor === mine[1])
  if (sameLine) return compare(mine, sameLine) >= 0
  const newest = fixes.at(-1)
  return newest !== undefined && compare(mine, newest) > 0
}

function judge(id: string, name: string, version: string | undefined, holes: readonly Hole[]): Finding {
  if (version === undefined || parse(version) === undefined)
    return unknown('warn', id, name, `its version is not known${version ? ` (${version})` : ''}`)
  const open = holes.filter(({ fixed }) => hasFix(version, fixed) === false)
  return check('warn', id, name, open.length === 0, {
    ok: `${version}, no hole known that concerns sandboxes`,
    bad: `${version} is older than the fixes of ${open.map((hole) => `${hole.id} (${hole.what})`).join('; ')}`,
    fix: 'Update it, or make sure that your distribution’s package has the fixes: Debian carries them back under old numbers.',
  })
}

export function judgeVersions(versions: { engine?: string; runc?: string }): Finding[] {
  return [
    judge('engine-version', 'Engine’s version', versions.engine, ENGINE),
    judge('runc-version', 'runc’s version', versions.runc, RUNC),
  ]
}
