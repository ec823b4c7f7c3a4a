/** Preloaded into an agent's process (`--import`): a model request whose body says BLOCK never returns to the event loop. */
import { isMainThread } from 'node:worker_threads'

const original = globalThis.fetch
if (isMainThread)
  globalThis.fetch = (input, init) => {
    if (typeof init?.body === 'string' && init.body.includes('BLOCK')) for (;;);
    return original(input, init)
  }
