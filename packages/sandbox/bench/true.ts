/**
 * What one `true` costs: through `acquire` and `run`, through dockerode's exec (create, start, inspect), through the
 * `docker exec` command, and as a plain child process of this one. Interleaved, so that a busy moment hits all alike.
 *
 *   node --conditions=source packages/sandbox/bench/true.ts [samples, default 300]
 *
 * Prints a table, then one line of JSON.
 */
import { execFile, spawn } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { loadavg } from 'node:os'
import { promisify } from 'node:util'

import Docker from 'dockerode'

import { dockerFixture } from '../test/docker-fixture.ts'

const samples = Number(process.argv[2] ?? 300)
if (!Number.isInteger(samples) || samples < 1) throw new Error('usage: true.ts [samples]')
const warmUp = Math.min(20, samples)

const fixture = await dockerFixture()
try {
  const sandboxes = fixture.controller()
  const { id } = await sandboxes.acquire('bench')
  const container = new Docker().getContainer(id)
  const execCommand = promisify(execFile)

  const ways: Record<string, () => Promise<void>> = {
    'acquire + run': async () => {
      const sandbox = await sandboxes.acquire('bench')
      const command = await sandbox.run({ id: randomBytes(16).toString('hex'), command: 'true' })
      const exit = await command.exit
      if (exit.code !== 0) throw new Error(`true ended with ${JSON.stringify(exit)}`)
      command.acknowledge(exit.bytes)
    },
    'dockerode exec': async () => {
      const exec = await container.exec({
        Cmd: ['bash', '-c', 'true'],
        AttachStdout: true,
        AttachStderr: true,
      })
      const stream = await exec.start({})
      stream.resume()
      await once(stream, 'end')
      const { ExitCode } = await exec.inspect()
      if (ExitCode !== 0) throw new Error(`true ended with ${ExitCode}`)
    },
    'docker exec': async () => {
      await execCommand('docker', ['exec', id, 'bash', '-c', 'true'])
    },
    'spawn on the host': async () => {
      const [code] = (await once(
        spawn('sh', ['-c', 'true'], { stdio: ['ignore', 'pipe', 'pipe'] }),
        'close',
      )) as [number]
      if (code !== 0) throw new Error(`true ended with ${code}`)
    },
  }

  const times = Object.fromEntries(Object.keys(ways).map((name) => [name, [] as number[]]))
  for (let n = -warmUp; n < samples; n += 1) {
    for (const [name, way] of Object.entries(ways)) {
      const from = performance.now()
      await way()
      if (n >= 0) times[name]?.push(performance.now() - from)
    }
  }

  const quantile = (sorted: number[], q: number): number =>
    sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * q))] ?? Number.NaN
  const rows = Object.entries(times).map(([name, list]) => {
    const sorted = list.toSorted((a, b) => a - b)
    return { name, p50: quantile(sorted, 0.5), p99: quantile(sorted, 0.99) }
  })
  const ours = rows[0]?.p50 ?? Number.NaN
  const { version } = await fixture.backend.capabilities()

  console.log(
    `one \`true\`, ${samples} samples each, interleaved; Docker Engine ${version}, load ${loadavg()
      .map((load) => load.toFixed(1))
      .join(' ')}`,
  )
  console.log(`${'way'.padEnd(20)}${'p50 ms'.padStart(9)}${'p99 ms'.padStart(9)}${'ours/p50'.padStart(10)}`)
  for (const { name, p50, p99 } of rows) {
    console.log(
      `${name.padEnd(20)}${p50.toFixed(2).padStart(9)}${p99.toFixed(2).padStart(9)}${`1/${(p50 / ours).toFixed(1)}`.padStart(10)}`,
    )
  }
  console.log(JSON.stringify({ bench: 'sandbox-true', samples, engine: version, load: loadavg(), rows }))
} finally {
  await fixture.dispose()
}
