/**
 * How many lines a package has, of source and of tests, and how many of them came since another
 * commit.
 */
import { execFile } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { promisify } from 'node:util'

interface Lines {
  now: number
  added: number
}

interface PackageLines {
  source: Lines
  tests: Lines
}

const CODE = /^(?<name>(?:packages|mcp|docker)\/[^/]+)\/.*\.(?:tsx?|css|c|h|sh)$/
const TEST = /\/(?:test|bench|fuzz)\//

/**
 * Of each package below `root`, by its path. Compared with where the branch left `origin/main`, or
 * with the commit before this one. Rejects with git's words where there is no such commit.
 */
export async function countLines(root: string): Promise<Map<string, PackageLines>> {
  const git = async (...args: string[]): Promise<string[]> => {
    const { stdout } = await promisify(execFile)('git', args, { cwd: root, maxBuffer: 2 ** 26 })
    return stdout.split('\n').filter((line) => line !== '')
  }
  const [head = ''] = await git('rev-parse', 'HEAD')
  const [fork] = await git('merge-base', 'HEAD', 'origin/main').catch(() => [])
  const base = fork === undefined || fork === head ? 'HEAD~1' : fork

  const packages = new Map<string, PackageLines>()
  const linesOf = (path: string): Lines | undefined => {
    const name = CODE.exec(path)?.groups?.['name']
    if (name === undefined) return undefined
    const found = packages.get(name) ?? { source: { now: 0, added: 0 }, tests: { now: 0, added: 0 } }
    packages.set(name, found)
    return TEST.test(path) ? found.tests : found.source
  }
  for (const path of await git('-c', 'core.quotePath=false', 'ls-files')) {
    const lines = linesOf(path)
    if (lines !== undefined) lines.now += readFileSync(join(root, path), 'utf8').split('\n').length - 1
  }
  for (const line of await git('-c', 'core.quotePath=false', 'diff', '--numstat', '--no-renames', base)) {
    const [added, removed, path = ''] = line.split('\t')
    const lines = linesOf(path)
    if (lines !== undefined) lines.added += Number(added) - Number(removed)
  }
  return packages
}

/** `packages/cli  3210 (+12) of source, 1400 (-3) of tests`, a line each, by name. */
export function lineCounts(packages: ReadonlyMap<string, PackageLines>): string[] {
  const shown = ({ now, added }: Lines): string => `${now} (${added < 0 ? '' : '+'}${added})`
  return [...packages]
    .toSorted(([a], [b]) => (a < b ? -1 : 1))
    .map(
      ([name, { source, tests }]) =>
        `${name.padEnd(25)} ${shown(source)} lines of source, ${shown(tests)} of tests`,
    )
}
