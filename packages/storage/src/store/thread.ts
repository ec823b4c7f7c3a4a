/** Threads of this package: programs in this folder, from the sources or as built. */
import { Worker } from 'node:worker_threads'

const isSource = import.meta.url.endsWith('.ts')

/** `name`: of its file, without the ending. */
export function threadFile(name: string): URL {
  return new URL(`./${name}.${isSource ? 'ts' : 'js'}`, import.meta.url)
}

export function startThread(file: URL, workerData: unknown): Worker {
  return new Worker(file, { workerData, execArgv: isSource ? ['--conditions=sandlot-source'] : [] })
}
