/**
 * The end of a test cluster, by one path: a sentinel process that ends it when its stdin closes, which its owner keeps
 * open. So it also ends after a killed owner. What a killed sentinel left, the next start removes, or this file without
 * an argument: it prints the number of such clusters.
 */
import { execFile, spawn } from 'node:child_process'
import { once } from 'node:events'
import { globSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { basename, join } from 'node:path'
import { text } from 'node:stream/consumers'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { isRunning, markOf, type ProcessMark } from '../../packages/cli/src/processes/process-mark.ts'
import { killCgroups, removeCgroups } from './cgroups.ts'

const PREFIX = 'sandlot-cluster-'
/** Between the making of a folder and the mark in it. */
const UNMARKED_MS = 60_000

export interface ClusterFolder {
  folder: string
  id: string
  /** Ends the cluster; settles when nothing is left of it. */
  end(): Promise<void>
}

/** Makes the folder of a cluster, with a sentinel that ends whatever will be in it. It is a user of the store of images. */
export async function openClusterFolder(store: string): Promise<ClusterFolder> {
  const folder = mkdtempSync(join(tmpdir(), PREFIX))
  const program = [process.execPath, '--conditions=sandlot-source', fileURLToPath(import.meta.url), folder]
  const sentinel = spawn('flock', ['--shared', '--no-fork', join(store, 'users'), ...program], {
    detached: true,
    stdio: ['pipe', 'ignore', 'pipe'],
  })
  await once(sentinel, 'spawn')
  const output = text(sentinel.stderr)
  writeFileSync(join(folder, 'sentinel.json'), JSON.stringify(markOf(sentinel.pid ?? 0)))
  return {
    folder,
    id: basename(folder),
    async end() {
      sentinel.stdin.end()
      if (sentinel.exitCode === null) await once(sentinel, 'exit')
      if (sentinel.exitCode !== 0) throw new Error(`The cluster did not end: ${await output}`)
    },
  }
}

/** Removes clusters whose sentinel was killed. Returns their number. */
export async function removeLeftClusters(): Promise<number> {
  const left = globSync(join(tmpdir(), `${PREFIX}*`)).filter((folder) => {
    try {
      return !isRunning(JSON.parse(readFileSync(join(folder, 'sentinel.json'), 'utf8')) as ProcessMark)
    } catch {
      return Date.now() - statSync(folder).mtimeMs > UNMARKED_MS
    }
  })
  for (const folder of left) await endCluster(folder)
  return left.length
}

/** Ends every process of a cluster, then removes its namespaces, cgroups and folder. */
async function endCluster(folder: string): Promise<void> {
  const id = basename(folder)
  await killCgroups(id, [''])
  for (const path of globSync(`/run/netns/${id}*`))
    await promisify(execFile)('ip', ['netns', 'delete', basename(path)])
  await removeCgroups(id)
  rmSync(folder, { recursive: true, force: true })
}

const [, program, ownFolder] = process.argv
const isProgram = program === fileURLToPath(import.meta.url)
if (isProgram && ownFolder === undefined) console.log(await removeLeftClusters())
if (isProgram && ownFolder !== undefined) {
  for (const name of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.on(name, () => {})
  process.stdin.resume()
  await once(process.stdin, 'close')
  await endCluster(ownFolder)
}
