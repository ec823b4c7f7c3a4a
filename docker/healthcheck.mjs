// Checks that a process is alive, for HEALTHCHECK, without curl in the image.
//   node healthcheck.mjs http://127.0.0.1:8002/healthz     an HTTP server that answers 2xx
//   node healthcheck.mjs /data/run/agent.sock              a Unix socket with a listener
// One of several targets is enough; $HOSTNAME in them is this container's.
import { get } from 'node:http'
import { connect } from 'node:net'

const targets = process.argv.slice(2).map((one) => one.replace('$HOSTNAME', process.env.HOSTNAME ?? ''))
const TIMEOUT_MS = 4_000

async function isAlive(target) {
  if (!target.startsWith('/')) return answers(target)
  const socket = connect(target)
  return new Promise((resolve, reject) => {
    socket.setTimeout(TIMEOUT_MS, () => reject(new Error('no answer')))
    socket.once('error', reject).once('connect', () => resolve(true))
  }).finally(() => socket.destroy())
}

/** `fetch` would ask the proxy of the environment. */
function answers(target) {
  return new Promise((resolve, reject) => {
    const signal = AbortSignal.timeout(TIMEOUT_MS)
    get(target, { agent: false, signal }, (response) => {
      response.resume()
      resolve(response.statusCode >= 200 && response.statusCode < 300)
    }).once('error', reject)
  })
}

try {
  process.exitCode = (await Promise.any(targets.map(isAlive))) ? 0 : 1
} catch (error) {
  console.error(String(error))
  process.exitCode = 1
}
