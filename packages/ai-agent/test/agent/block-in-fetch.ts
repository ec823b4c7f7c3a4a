/** Preloaded into an agent's process (`--import`): a model request whose body says BLOCK never returns to the event loop. */
import { isMainThread } from 'node:worker_threads'

const original = globalThis.fetch
if (isMainThread)
  globalThis.fetch = (input, init) => {
    if (typeof init?.body === 'string' && init.body.includes('BLOCK')) block()
    return original(input, init)
  }

/** Busy enough for the watchdog, with rests: half a minute of a whole processor would slow all other tests down. */
function block(): never {
  const cell = new Int32Array(new SharedArrayBuffer(Int32Array.BYTES_PER_ELEMENT))
  for (;;) {
    const before = process.threadCpuUsage()
    while (process.threadCpuUsage(before).user < 30_000);
    Atomics.wait(cell, 0, 0, 70)
  }
}
