/**
 * A controller as a process of its own, to be killed: acquires sandboxes, runs a command in each,
 * stores the output in a file per user, then acknowledges it; or writes a file in each for ever.
 * Reports its position on stdout, one word a line.
 */
import { openSync, writeSync } from 'node:fs'
import { join } from 'node:path'
import { setImmediate as tick } from 'node:timers/promises'

import { createDockerBackend, type DockerBackendOptions } from '../../src/backends/docker/backend.ts'
import {
  createKubernetesBackend,
  type KubernetesBackendOptions,
} from '../../src/backends/kubernetes/backend.ts'
import { createFileLedger } from '../../src/controller/file-ledger.ts'
import { createSandboxes } from '../../src/controller/sandboxes.ts'

/** Backend of its sandboxes. */
export type Engine = { docker: DockerBackendOptions } | { kubernetes: KubernetesBackendOptions }

export interface ControllerOrders {
  engine: Engine
  deployment: string
  /** Hex. */
  deploymentKey: string
  ledger: string
  image: string
  users: string[]
  /** Run in each; none for an idle controller. */
  command?: { id: string; text: string }
  /**
   * Write this file in each over and over, as many bytes of one letter, the next letter each time.
   */
  write?: { path: string; bytes: number }
  /** Folder of the outputs, one file per user. */
  folder: string
  /** Kill itself so many turns of the event loop after START was handed over. */
  dieAfterStart?: number
}

const orders = JSON.parse(process.argv[2] ?? '') as ControllerOrders
const { deployment, command, engine } = orders
const sandboxes = createSandboxes({
  backend:
    'docker' in engine
      ? createDockerBackend(engine.docker)
      : await createKubernetesBackend(engine.kubernetes),
  ledger: createFileLedger(orders.ledger),
  deploymentId: deployment,
  deploymentKey: Buffer.from(orders.deploymentKey, 'hex'),
  image: orders.image,
})
const say = (word: string): void => void writeSync(1, `${word}\n`)

const got = await Promise.all(orders.users.map((user) => sandboxes.acquire(user)))
say('ready')
if (command) {
  const running = got.map((sandbox) => sandbox.run({ id: command.id, command: command.text, merge: true }))
  if (orders.dieAfterStart !== undefined) {
    for (let turn = 0; turn < orders.dieAfterStart; turn += 1) await tick()
    process.kill(process.pid, 'SIGKILL')
  }
  await Promise.all(
    running.map(async (starting, place) => {
      const started = await starting
      say('started')
      const file = openSync(join(orders.folder, orders.users[place] ?? ''), 'w')
      let stored = 0
      for await (const { data } of started.output) {
        writeSync(file, data)
        stored += data.length
        started.acknowledge({ stdout: stored })
      }
      say('ended')
    }),
  )
}
if (orders.write) {
  const { path, bytes } = orders.write
  for (let n = 0; ; n += 1) {
    const content = Buffer.alloc(bytes, String.fromCharCode(97 + (n % 26)))
    await Promise.all(got.map(({ files }) => files.write(path, content)))
    if (n === 0) say('written')
  }
}
// Wait to be killed.
setInterval(() => {}, 60_000)
