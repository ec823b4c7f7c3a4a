/** Programs by others that tests run against, installed once a machine in a cache outside of the tree. */
import { execFile } from 'node:child_process'
import { existsSync } from 'node:fs'
import { mkdir, rename, rm } from 'node:fs/promises'
import { homedir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'

export interface PeerProgram {
  name: string
  /** Exact: another one is another folder of the cache. */
  version: string
  /** Installs it into this empty folder, which is moved afterwards. Rejects with the reason. */
  build(folder: string): Promise<void>
}

const CACHE = join(homedir(), '.cache', 'sandlot-peers')

/** The folder of a program that was built; undefined where it was not. */
export function peerFolder({ name, version }: PeerProgram): string | undefined {
  const folder = join(CACHE, `${name}-${version}`)
  return existsSync(folder) ? folder : undefined
}

/** Its folder, built now where it is missing. Rejects with the reason of the build. */
export async function buildPeer(program: PeerProgram): Promise<string> {
  const built = peerFolder(program)
  if (built !== undefined) return built
  const folder = join(CACHE, `${program.name}-${program.version}`)
  const partial = `${folder}.${process.pid}`
  await mkdir(partial, { recursive: true })
  try {
    await program.build(partial)
    await rename(partial, folder)
  } catch (error) {
    await rm(partial, { recursive: true, force: true })
    // Another process was faster.
    if (peerFolder(program) === undefined) throw error
  }
  return folder
}

/** Why tests against it are skipped; undefined where it is in the cache. */
export function peerMissing(program: PeerProgram): string | undefined {
  return peerFolder(program) === undefined
    ? `${program.name} ${program.version} is not in the cache: node --conditions=sandlot-source packages/ai-agent/test/peers/build.ts`
    : undefined
}

/** A virtual environment of Python with these packages from PyPI; its `bin/python` may be moved with it. */
export async function installPython(folder: string, packages: readonly string[]): Promise<void> {
  const run = promisify(execFile)
  await run('python3', ['-m', 'venv', folder])
  await run(join(folder, 'bin/python'), ['-m', 'pip', 'install', '--quiet', ...packages], {
    maxBuffer: 1e8,
  })
}
