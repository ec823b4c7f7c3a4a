import { randomBytes } from 'node:crypto'
import type { Duplex } from 'node:stream'
import { setTimeout as sleep } from 'node:timers/promises'

import { afterAll, beforeAll, describe, expect, test } from 'vitest'

import { readAccess } from '../../../src/backends/kubernetes/access.ts'
import { createApi, type KubernetesApi } from '../../../src/backends/kubernetes/api.ts'
import { openExec } from '../../../src/backends/kubernetes/exec-stream.ts'
import { StreamPace } from '../../../src/backends/kubernetes/pace.ts'
import { SandboxError } from '../../../src/errors.ts'
import { extent, sample } from '../../../../../test/campaign.ts'
import { noCluster, noOwnCluster, ownCluster, testCluster } from '../../../../../test/cluster/cluster.ts'

const MiB = 1024 * 1024
const namespace = `exec-${randomBytes(4).toString('hex')}`
const POD = 'box'
const pace = new StreamPace(500 * MiB)
let api: KubernetesApi

const exec = (...command: string[]): Promise<Duplex> =>
  openExec(api, { pod: POD, container: POD, command }, { pace })

/** Reads so many bytes, and says when fewer come. */
async function read(stream: Duplex, count: number): Promise<Buffer> {
  const pieces: Buffer[] = []
  let left = count
  for await (const bytes of stream.iterator({ destroyOnReturn: false }) as AsyncIterable<Buffer>) {
    pieces.push(bytes)
    left -= bytes.length
    if (left <= 0) return Buffer.concat(pieces)
  }
  throw new Error(`the stream ended ${left} bytes too early`)
}

async function endOf(stream: Duplex): Promise<SandboxError> {
  stream.resume()
  if (!stream.closed) await new Promise((resolve) => stream.once('close', resolve))
  expect(stream.readableEnded).toBe(false)
  expect(stream.errored).toBeInstanceOf(SandboxError)
  return stream.errored as SandboxError
}

/** Number of processes in the Pod with this word in their command line. */
async function processes(word: string): Promise<number> {
  // Not of the shell that looks: its command line has the word with brackets in it.
  const script = `grep -ls '[${word[0]}]${word.slice(1)}' /proc/[0-9]*/cmdline | wc -l`
  return Number(await testCluster().kubectl('exec', '-n', namespace, POD, '--', 'sh', '-c', script))
}

const killed = ['apiserver', 'kubelet', 'containerd'] as const
const suffix = (reason: string | undefined): string => (reason === undefined ? '' : ` (${reason})`)

describe.skipIf(noCluster !== undefined)(`an exec as a stream${suffix(noCluster)}`, () => {
  beforeAll(async () => {
    const { kubeconfig, kubectl, image } = testCluster()
    api = createApi(await readAccess({ namespace, kubeconfig, environment: {} }))
    await kubectl('create', 'namespace', namespace)
    await kubectl('wait', '-n', namespace, '--for=create', 'serviceaccount/default', '--timeout=60s')
    const run = ['run', POD, '-n', namespace, `--image=${image}`, '--restart=Never']
    await kubectl(...run, '--command', '--', 'sleep', 'infinity')
    await kubectl('wait', '-n', namespace, '--for=condition=Ready', `pod/${POD}`, '--timeout=60s')
  })
  afterAll(async () => {
    api.close()
    await testCluster().kubectl('delete', 'namespace', namespace, '--wait=false')
  })

  test('carries any bytes both ways at once, however they are cut', async () => {
    const stream = await exec('cat')
    const sent = randomBytes(extent(8, 64) * MiB)
    const echoed = read(stream, sent.length)
    for (let at = 0; at < sent.length;) {
      const size = 1 + Math.floor(Math.random() ** 4 * 200_000)
      if (!stream.write(sent.subarray(at, at + size)))
        await new Promise((resolve) => stream.once('drain', resolve))
      at += size
    }
    expect((await echoed).equals(sent)).toBe(true)
    // cat ends at the end of its input.
    stream.end()
    expect((await endOf(stream)).message).toContain('status Success')
  })

  test('leaves with the sender what is not read, and with the writer what is not taken', async () => {
    const printer = await exec('cat', '/dev/zero')
    const before = process.memoryUsage().arrayBuffers
    let most = 0
    for (let i = 0; i < extent(20, 100); i += 1) {
      await read(printer, 2 * MiB)
      await sleep(5)
      most = Math.max(most, process.memoryUsage().arrayBuffers - before)
    }
    printer.destroy()
    const sleeper = await exec('sleep', 'infinity')
    let taken = 0
    for (let i = 0; i < 200; i += 1) sleeper.write(Buffer.alloc(MiB), (error) => error ?? (taken += 1))
    await sleep(2_000)
    expect(taken).toBeLessThan(100)
    sleeper.destroy()
    expect(most).toBeLessThan(32 * MiB)
  })

  test('opens 28 at once, and ends what ran in them when they are destroyed', async () => {
    const mark = randomBytes(8).toString('hex')
    const from = performance.now()
    const streams = await Promise.all(Array.from({ length: 28 }, () => exec('sh', '-c', `cat; : ${mark}`)))
    console.info(`28 streams opened in ${Math.round(performance.now() - from)} ms`)
    for (const [i, stream] of streams.entries()) stream.write(String.fromCodePoint(64 + i))
    for (const [i, stream] of streams.entries())
      expect((await read(stream, 1)).toString()).toBe(String.fromCodePoint(64 + i))
    for (const stream of streams) stream.destroy()
    await expect.poll(() => processes(mark), { timeout: 20_000 }).toBe(0)
  })

  test.for<[command: string[], words: RegExp]>([
    [['sh', '-c', 'echo no sbxd listens >&2; exit 2'], /exit code 2; no sbxd listens/],
    [['false'], /exit code 1/],
    [['no-such-program'], /no-such-program/],
    [['true'], /status Success/],
  ])('gives the words of %j', async ([command, words]) => {
    const error = await endOf(await exec(...command))
    expect(error).toMatchObject({ code: 'engine_unavailable', unreachable: true })
    expect(error.message).toMatch(words)
  })

  test('is refused in words without a Pod, without a container, and when cancelled', async () => {
    const target = { pod: 'nobody', container: POD, command: ['cat'] }
    await expect(openExec(api, target, { pace })).rejects.toMatchObject({ code: 'sandbox_lost' })
    const other = { pod: POD, container: 'other', command: ['cat'] }
    await expect(openExec(api, other, { pace })).rejects.toThrow(/container other is not valid/)
    const signal = AbortSignal.abort()
    await expect(openExec(api, target, { pace, signal })).rejects.toMatchObject({ code: 'cancelled' })
  })

  describe.skipIf(noOwnCluster !== undefined)(`that is cut${suffix(noOwnCluster)}`, () => {
    test.for(sample('killed below an exec', killed, 1))(
      '%s killed: it ends, its program does not',
      async (part) => {
        const { kubectl, signal, start } = ownCluster()
        const node = await kubectl('get', 'pod', POD, '-n', namespace, '-o', 'jsonpath={.spec.nodeName}')
        const victim = part === 'apiserver' ? part : (`${part}${node.endsWith('2') ? 2 : 1}` as const)
        const mark = randomBytes(8).toString('hex')
        const loop = `trap '' HUP PIPE; while :; do echo ${mark}; sleep 0.1; done`
        const stream = await exec('sh', '-c', loop)
        await read(stream, 100)
        const end = endOf(stream)
        await signal(victim, 'SIGKILL')
        const error = await end
        console.info(`${victim} killed: ${error.message}`)
        expect(error).toMatchObject({ code: 'engine_unavailable', unreachable: true })
        await start(victim)
        await expect.poll(() => processes(mark).catch(() => 0), { timeout: 60_000 }).toBeGreaterThan(0)
      },
    )
  })
})
