/**
 * Print every figure of the repository's weight, and fail where one has grown: `node --conditions=sandlot-source
 * test/weigh.ts`. With `--write` its figures are those that are held from now on.
 */
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { TABLES } from './arrow-tables.ts'
import { read, repositoryFiles, ROOT } from './source-files.ts'
import { countLongFunctions, weigh, type Weight, weightLines, weightProblems } from './weight.ts'

const FILE = join(ROOT, 'test/weight.json')

const files = repositoryFiles()
  .filter((path) => /\.(?:tsx?|mjs|js|css|c|h|sh|md)$/.test(path))
  .map(read)
const now = weigh(files, TABLES, countLongFunctions(files))
if (process.argv.includes('--write')) {
  writeFileSync(FILE, `${JSON.stringify(now, undefined, 2)}\n`)
  for (const line of weightLines(now, now)) console.log(line)
} else {
  const held = JSON.parse(readFileSync(FILE, 'utf8')) as Weight
  const problems = weightProblems(now, held)
  for (const line of [...weightLines(now, held), ...problems]) console.log(line)
  if (problems.length > 0) process.exitCode = 1
}
