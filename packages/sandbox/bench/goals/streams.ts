/**
 * G6 to G10: a gigabyte to the controller, a reader that stalls, an output that is cut, and very
 * many tiny writes.
 */
import { execFile } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { monitorEventLoopDelay } from 'node:perf_hooks'
import { PassThrough, Writable } from 'node:stream'
import { setTimeout as sleep } from 'node:timers/promises'
import { promisify } from 'node:util'

import { parseDockerHost } from '../../src/backends/docker/connection.ts'
import { testConfig } from '../../test/support/config.ts'
import { type BenchContext, newId } from '../context.ts'
import { listenerAt } from '../listener.ts'
import { inTurns, p50, seriesOf } from '../../../../test/bench/measure.ts'
import { atLeast, atMost, below, type Result } from '../../../../test/bench/report.ts'

const MiB = 1024 * 1024
const GIGABYTE = 1024 * MiB
const PRINT = ['head', '-c', String(GIGABYTE), '/dev/zero']
const STREAM_SAMPLES = 11
const STALL_MS = 30_000
const TINY_WRITES = 200_000

/** Calls `body` and gives MB (10⁶ bytes) a second over the gigabyte. */
async function rate(body: () => Promise<number>): Promise<number> {
  const from = performance.now()
  const bytes = await body()
  if (bytes < GIGABYTE) throw new Error(`only ${bytes} bytes came`)
  return bytes / 1e6 / ((performance.now() - from) / 1000)
}

export async function gigabyte({ sandboxes, docker }: BenchContext): Promise<Result[]> {
  const sandbox = await sandboxes.acquire('bench')
  const container = docker.getContainer(sandbox.id)
  const exec = async () => {
    const made = await container.exec({ Cmd: PRINT, AttachStdout: true, AttachStderr: true })
    return made.start({ hijack: true, stdin: false })
  }
  const series = await inTurns(
    [
      {
        name: 'Sandlot',
        once: () =>
          rate(async () => {
            const command = await sandbox.run({
              id: newId(),
              command: PRINT,
              autoAcknowledge: true,
              lend: true,
            })
            let bytes = 0
            for await (const chunk of command.output) bytes += chunk.data.length
            await command.exit
            return bytes
          }),
      },
      {
        name: 'docker exec, raw bytes counted',
        once: () =>
          rate(async () => {
            const stream = await exec()
            let bytes = 0
            stream.on('data', (chunk: Buffer) => (bytes += chunk.length))
            await once(stream, 'end')
            return bytes
          }),
      },
      {
        name: 'dockerode demuxStream to a sink',
        once: () =>
          rate(async () => {
            const stream = await exec()
            let bytes = 0
            const sink = new Writable({
              write(chunk: Buffer, _encoding, done) {
                bytes += chunk.length
                done()
              },
            })
            docker.modem.demuxStream(stream, sink, new PassThrough().resume())
            await once(stream, 'end')
            return bytes
          }),
      },
    ],
    STREAM_SAMPLES,
    1,
  )
  const [ours, raw, demux] = series
  return [
    {
      goal: 'G6, G7',
      title: 'one GiB to the controller',
      unit: 'MB/s',
      series,
      verdicts: [
        atLeast('G6 ≥ 0.85 of docker exec read raw', p50(ours), p50(raw), 0.85),
        {
          ...atLeast('G7 ≥ 1.5 times demuxStream', p50(ours), p50(demux), 1.5),
          obstacle: 'demuxStream reads the bytes that docker exec sends: the engine limits both.',
        },
      ],
    },
  ]
}

/** VmRSS in MiB of the engine's process; NaN where it is unknown. */
function engineMemory(): number {
  const address = parseDockerHost(testConfig.dockerHost)
  const pid = address.kind === 'unix' ? listenerAt(address.socketPath, 'dockerd') : undefined
  if (pid === undefined) return NaN
  return Number(/VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1]) / 1024
}

export async function stalledReader({ sandboxes }: BenchContext): Promise<Result[]> {
  const sandbox = await sandboxes.acquire('bench')
  const command = await sandbox.run({ id: newId(), command: PRINT, autoAcknowledge: true })
  const output = command.output[Symbol.asyncIterator]()
  await output.next()
  const before = { ours: process.memoryUsage().rss / MiB, engine: engineMemory() }
  await sleep(STALL_MS)
  const after = { ours: process.memoryUsage().rss / MiB, engine: engineMemory() }
  await command.cancel(0)
  while (!(await output.next()).done);
  await command.exit
  const grown = { ours: after.ours - before.ours, engine: after.engine - before.engine }
  return [
    {
      goal: 'G8',
      title: `a reader that stalls for ${STALL_MS / 1000} s in the middle of a GiB: growth`,
      unit: 'MiB',
      series: [
        seriesOf('controller', grown.ours),
        Number.isNaN(grown.engine)
          ? { ...seriesOf('dockerd'), failures: 1, error: 'its process is not known' }
          : seriesOf('dockerd', grown.engine),
      ],
      verdicts: [
        below('controller ≤ 16 MiB', grown.ours, 16, 'MiB'),
        below('dockerd ≤ 8 MiB', grown.engine, 8, 'MiB'),
      ],
    },
  ]
}

export async function cutOutput({ sandboxes }: BenchContext): Promise<Result[]> {
  const sandbox = await sandboxes.acquire('bench')
  const HEAD = 8 * 1024
  const TAIL = 32 * 1024
  const series = await inTurns(
    [
      {
        name: 'Sandlot, cut at the source',
        async once() {
          const command = await sandbox.run({
            id: newId(),
            command: PRINT,
            policy: { kind: 'cut', head: HEAD, tail: TAIL },
            autoAcknowledge: true,
          })
          let bytes = 0
          for await (const chunk of command.output) bytes += chunk.data.length
          await command.exit
          if (bytes > HEAD + TAIL) throw new Error(`${bytes} bytes came`)
        },
      },
      {
        name: 'docker exec through head and tail',
        async once() {
          const shell = `docker exec ${sandbox.id} ${PRINT.join(' ')} | (head -c ${HEAD} >/dev/null; tail -c ${TAIL} >/dev/null)`
          await promisify(execFile)('sh', ['-c', shell])
        },
      },
    ],
    STREAM_SAMPLES,
    1,
  )
  const [ours, theirs] = series
  return [
    {
      goal: 'G9',
      title: 'one GiB printed, only its head and tail wanted',
      series,
      verdicts: [atMost('≤ 0.5 of the time', p50(ours), p50(theirs), 0.5)],
    },
  ]
}

/** `TINY_WRITES` writes of one byte, stdout and stderr in turns. */
const TINY = `import os
for _ in range(${TINY_WRITES / 2}):
    os.write(1, b"o")
    os.write(2, b"e")`

export async function tinyWrites({ sandboxes, docker }: BenchContext): Promise<Result[]> {
  const sandbox = await sandboxes.acquire('bench')
  const delay = monitorEventLoopDelay({ resolution: 1 })
  const from = performance.now()
  delay.enable()
  const command = await sandbox.run({ id: newId(), command: ['python3', '-c', TINY], autoAcknowledge: true })
  let bytes = 0
  for await (const chunk of command.output) bytes += chunk.data.length
  await command.exit
  delay.disable()
  const ours = performance.now() - from
  const stall = delay.max / 1e6
  return [
    {
      goal: 'G10',
      title: `${TINY_WRITES} writes of one byte, stdout and stderr in turns`,
      series: [
        seriesOf('Sandlot', ours),
        seriesOf('Sandlot, longest stall of the controller', stall),
        demuxed(docker),
      ],
      verdicts: [
        { text: 'every byte came', figure: String(bytes), reached: bytes === TINY_WRITES },
        below('longest stall ≤ 20 ms', stall, 20, 'ms'),
      ],
    },
  ]
}

/**
 * The same writes as dockerd frames them, in pieces of 64 KiB as a socket gives them, through
 * demuxStream.
 */
function demuxed(docker: BenchContext['docker']) {
  const frame = (stream: number): Buffer => Buffer.from([stream, 0, 0, 0, 0, 0, 0, 1, 0x78])
  const bytes = Buffer.concat(Array.from({ length: TINY_WRITES }, (_, place) => frame(1 + (place % 2))))
  const stream = new PassThrough({ highWaterMark: bytes.length })
  const name = 'dockerode demuxStream, the same bytes'
  const sink = (): PassThrough => new PassThrough({ highWaterMark: bytes.length })
  docker.modem.demuxStream(stream, sink(), sink())
  const from = performance.now()
  try {
    for (let at = 0; at < bytes.length; at += 64 * 1024)
      stream.emit('data', bytes.subarray(at, at + 64 * 1024))
    return seriesOf(name, performance.now() - from)
  } catch (error) {
    return { ...seriesOf(name), failures: 1, error: error instanceof Error ? error.message : String(error) }
  }
}
