/**
 * What the gate adds: one `true`, and a stream of many bytes, through a gate of its own, which is a
 * process as in a deployment, and straight to the engine, in turns, so that a busy moment hits both
 * alike.
 *
 *   node --conditions=sandlot-source packages/engine-gate/bench/true.ts [samples, default 300] [MiB, default 1024]
 *
 * Prints a table, then one line of JSON.
 */
import { randomBytes } from 'node:crypto'
import { loadavg } from 'node:os'
import { join } from 'node:path'

import { createDockerBackend } from '@sandlot/sandbox/backends/docker/backend'
import type { Sandbox } from '@sandlot/sandbox/sandbox'
import { testConfig } from '../../sandbox/test/support/config.ts'
import { dockerFixture } from '../../sandbox/test/support/docker-fixture.ts'
import { killGate, startGateProcess } from '../test/gate-process.ts'

const [samples, mebibytes] = [Number(process.argv[2] ?? 300), Number(process.argv[3] ?? 1024)]
if (!(samples >= 1 && mebibytes >= 1)) throw new Error('usage: true.ts [samples] [MiB]')

const fixture = await dockerFixture()
const socket = join(fixture.folder, 'run', 'engine', 'docker.sock')
const gate = await startGateProcess(socket, {
  SANDLOT_DATA: fixture.folder,
  SANDLOT_DEPLOYMENT: fixture.deployment,
  SANDLOT_SANDBOX_IMAGE: testConfig.image,
  ...(testConfig.dockerHost === undefined ? {} : { DOCKER_HOST: testConfig.dockerHost }),
})

async function run(sandbox: Sandbox, command: string): Promise<number> {
  const from = performance.now()
  const running = await sandbox.run({ id: randomBytes(16).toString('hex'), command, merge: true })
  for await (const chunk of running.output) running.acknowledge({ stdout: chunk.offset + chunk.data.length })
  const exit = await running.exit
  if (exit.code !== 0) throw new Error(`it ended with ${JSON.stringify(exit)}`)
  running.acknowledge(exit.bytes)
  return performance.now() - from
}

try {
  const backend = createDockerBackend({ deployment: fixture.deployment, dockerHost: `unix://${socket}` })
  const ways = {
    direct: await fixture.controller().acquire('direct'),
    gate: await fixture.controller({ backend }).acquire('gate'),
  }
  const times = { direct: [] as number[], gate: [] as number[] }
  const streams = { direct: [] as number[], gate: [] as number[] }
  const names = ['direct', 'gate'] as const
  for (let n = -20; n < samples; n += 1) {
    for (const name of names) {
      const ms = await run(ways[name], 'true')
      if (n >= 0) times[name].push(ms)
    }
  }
  for (let n = 0; n < 3; n += 1) {
    for (const name of names) streams[name].push(await run(ways[name], `head -c ${mebibytes}M /dev/zero`))
  }
  const quantile = (list: number[], q: number): number =>
    list.toSorted((a, b) => a - b)[Math.floor((list.length - 1) * q)] ?? Number.NaN
  const rows = names.map((name) => ({
    name,
    p50: quantile(times[name], 0.5),
    p99: quantile(times[name], 0.99),
    mebibytesPerSecond: mebibytes / (quantile(streams[name], 0.5) / 1000),
  }))
  console.log(
    `\`true\` ${samples} times and ${mebibytes} MiB thrice, load ${loadavg()
      .map((load) => load.toFixed(1))
      .join(' ')}`,
  )
  console.log(`${'way'.padEnd(10)}${'p50 ms'.padStart(9)}${'p99 ms'.padStart(9)}${'MiB/s'.padStart(9)}`)
  for (const { name, p50, p99, mebibytesPerSecond } of rows)
    console.log(
      `${name.padEnd(10)}${p50.toFixed(2).padStart(9)}${p99.toFixed(2).padStart(9)}${mebibytesPerSecond.toFixed(0).padStart(9)}`,
    )
  console.log(JSON.stringify({ bench: 'gate-true', samples, mebibytes, load: loadavg(), rows }))
} finally {
  await fixture.dispose()
  await killGate(gate, 'SIGTERM')
}
