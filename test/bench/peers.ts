/** Libraries that a bench compares with, in a folder `peers` next to it with a lockfile of its own. */
import { execFile } from 'node:child_process'
import { statSync } from 'node:fs'
import { createRequire } from 'node:module'
import { fileURLToPath, pathToFileURL } from 'node:url'
import { promisify } from 'node:util'

/** Answers the folder's path. */
export async function installPeers(folder: URL): Promise<string> {
  const cwd = fileURLToPath(folder)
  // npm writes it at the end of an installation.
  const installed = timeOf(new URL('node_modules/.package-lock.json', folder))
  if (installed < timeOf(new URL('package-lock.json', folder))) {
    console.error('Installing the libraries to compare with (once)')
    await promisify(execFile)('npm', ['ci', '--ignore-scripts', '--no-audit', '--no-fund'], { cwd })
  }
  return cwd
}

/** When the file was written last, in epoch milliseconds; 0 where there is none. */
function timeOf(file: URL): number {
  return statSync(file, { throwIfNoEntry: false })?.mtimeMs ?? 0
}

/** `T` is as much of the library as is called. */
export async function loadPeer<T>(folder: URL, name: string): Promise<T> {
  const path = createRequire(new URL('package.json', folder)).resolve(name)
  return (await import(pathToFileURL(path).href)) as T
}
