/** Preloaded into an agent's process (`--import`): a model request whose body says BLOCK never returns to the event loop. */
import { isMainThread } from 'node:worker_threads'

interface Dispatcher {
  dispatch(options: { body?: unknown }, handler: object): boolean
}

if (isMainThread) {
  // Node loads undici, which sets the symbol, when a class of `fetch` is first named.
  void Headers
  const dispatcher: Dispatcher = Reflect.get(globalThis, Symbol.for('undici.globalDispatcher.1'))
  const original = dispatcher.dispatch
  dispatcher.dispatch = function dispatch(options, handler) {
    if (String(options.body).includes('BLOCK')) block()
    return original.call(this, options, handler)
  }
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
