/** Threads of this package: programs from the sources or as built. */
import { Worker, workerData } from 'node:worker_threads'

const isSource = import.meta.url.endsWith('.ts')

/** `name`: of its file without the ending, in the folder of the module `from`. */
export function threadFile(name: string, from: string): URL {
  return new URL(`./${name}.${isSource ? 'ts' : 'js'}`, from)
}

interface ThreadData {
  path: string
  /** Names of the migrations that the database must have. */
  migrations: readonly string[]
  /** 1 once the thread has loaded what it needs, or is gone. */
  loaded: Int32Array
}

const loadedOf = new WeakMap<Worker, Int32Array>()

/** A thread for the database at `path` with these migrations. End it with `endThread`. */
export function startThread(file: URL, path: string, migrations: readonly string[] = []): Worker {
  const loaded = new Int32Array(new SharedArrayBuffer(Int32Array.BYTES_PER_ELEMENT))
  const data: ThreadData = { path, migrations, loaded }
  const worker = new Worker(file, {
    workerData: data,
    execArgv: isSource ? ['--conditions=sandlot-source'] : [],
  })
  loadedOf.set(worker, loaded)
  return worker.once('exit', () => mark(loaded))
}

/**
 * Ends a thread. It waits until the thread has loaded SQLite: a thread that is ended while it loads
 * a native module aborts the whole process.
 */
export async function endThread(worker: Worker): Promise<void> {
  worker.ref()
  const loaded = loadedOf.get(worker)
  if (loaded !== undefined) await Atomics.waitAsync(loaded, 0, 0).value
  await worker.terminate()
}

/** In a thread: its database. */
export function threadDatabase(): Pick<ThreadData, 'path' | 'migrations'> {
  return workerData as ThreadData
}

/** To be called in a thread when it has opened its database. */
export function threadLoaded(): void {
  mark((workerData as ThreadData).loaded)
}

function mark(loaded: Int32Array): void {
  Atomics.store(loaded, 0, 1)
  Atomics.notify(loaded, 0)
}
