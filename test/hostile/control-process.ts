/**
 * The same measurements against something that is not ours, at the same moment: a process of its own that watches its own
 * event loop and starts `sh -c true` on the host. What the machine's load does to it, it may do to the product.
 */
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'

/** Between two looks at the loop, which its delay includes. */
const LOOKS_MS = 10

const PROGRAM = `
  const { spawn } = require('node:child_process')
  const { monitorEventLoopDelay } = require('node:perf_hooks')
  const loop = monitorEventLoopDelay({ resolution: ${LOOKS_MS} })
  loop.enable()
  let spawns = []
  const probe = () => {
    const from = performance.now()
    spawn('sh', ['-c', 'true'], { stdio: 'ignore' }).on('exit', () => {
      spawns.push(performance.now() - from)
      setTimeout(probe, 100)
    })
  }
  probe()
  process.on('message', () => {
    process.send({ stallMs: Math.max(0, loop.max / 1e6 - ${LOOKS_MS}), spawnMs: spawns })
    loop.reset()
    spawns = []
  })
  process.on('disconnect', () => process.exit())
`

/** Since the report before: the longest stall of an idle event loop, and how long each start of a shell took. */
export interface ControlReport {
  stallMs: number
  spawnMs: number[]
}

export interface Control {
  report(): Promise<ControlReport>
  close(): Promise<void>
}

export function startControl(): Control {
  const child: ChildProcess = spawn(process.execPath, ['-e', PROGRAM], {
    stdio: ['ignore', 'ignore', 'inherit', 'ipc'],
  })
  const ended = once(child, 'exit')
  return {
    async report() {
      const answer = once(child, 'message')
      child.send({})
      const [message] = await answer
      return message as ControlReport
    },
    async close() {
      if (child.connected) child.disconnect()
      await ended
    },
  }
}
