// Is this process alive? For HEALTHCHECK, without curl in the image.
//   node healthcheck.mjs http://127.0.0.1:8002/healthz     an HTTP server that answers 2xx
//   node healthcheck.mjs /data/run/agent.sock              a Unix socket that somebody listens on
import { connect } from 'node:net'

const target = process.argv[2] ?? ''
const TIMEOUT_MS = 4_000

async function isAlive() {
  if (!target.startsWith('/')) return (await fetch(target, { signal: AbortSignal.timeout(TIMEOUT_MS) })).ok
  const socket = connect(target)
  return new Promise((resolve, reject) => {
    socket.setTimeout(TIMEOUT_MS, () => reject(new Error('no answer')))
    socket.once('error', reject).once('connect', () => resolve(true))
  }).finally(() => socket.destroy())
}

try {
  process.exitCode = (await isAlive()) ? 0 : 1
} catch (error) {
  console.error(String(error))
  process.exitCode = 1
}
