/**
 * Invariants after every row: the supervisor answers, nothing of the command is left, the
 * controller did not stall or grow, the host has no new file, the neighbour noticed nothing.
 *
 * Times are compared with what they were idle and with a control at the same moment, because the machine that runs this
 * may be loaded. A violation in time or memory alone lets the row be tried again; the others fail at once.
 */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { monitorEventLoopDelay } from 'node:perf_hooks'
import { setTimeout as sleep } from 'node:timers/promises'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { randomBytes } from 'node:crypto'

import type { Sandbox } from '../../packages/sandbox/src/sandbox.ts'
import { shell } from '../../packages/sandbox/test/support/docker-fixture.ts'
import { type Control, startControl } from './control-process.ts'
import { STRANGERS } from './row.ts'
import type { Stage } from './stage.ts'

/** Milliseconds that the table asks for on an idle machine. */
const ANSWER_MS = 100
const STALL_MS = 50
/** Allowed factor over a simultaneous control, on a loaded sandbox with more processes to wait for. */
const LOADED = 10
/** Allowed factor of the neighbour's `true` over an idle one, from the table. */
const NEIGHBOUR = 3
/** Between two looks of an idle event loop, which its delay includes. */
const LOOP_LOOKS_MS = 5
const GROWTH_BYTES = 16 * 1024 * 1024
/** Pages that an allocator keeps after everything in them is free: a process may hold so many, live bytes may not grow. */
const KEPT_BYTES = 64 * 1024 * 1024
/** The host may not come closer to a full disk than this. */
const FREE_FLOOR = 1024 ** 3

setFlagsFromString('--expose-gc')
const collectGarbage = runInNewContext('gc') as () => void

export interface Findings {
  /** Wrong whatever the load. */
  broken: string[]
  /** Too slow or too large, which the machine's load may explain once. */
  slow: string[]
}

/** Worst values of a run, in milliseconds and bytes. */
export interface Worst {
  answerMs: number
  stallMs: number
  neighbourMs: number
  growthBytes: number
}

export interface Watch {
  /** Play `row` under observation. Rejects with what the row rejects with. */
  during(row: () => Promise<void>): Promise<Findings>
  readonly worst: Worst
  /** The longest of some. */
  readonly idle: { trueMs: number; spawnMs: number }
  close(): Promise<void>
}

/** Measures the idle state first, which takes about two seconds. */
export async function openWatch(stage: Stage): Promise<Watch> {
  const control = startControl()
  const loop = monitorEventLoopDelay({ resolution: LOOP_LOOKS_MS })
  loop.enable()
  const idle = await idleTimes(stage, control)
  const worst: Worst = { answerMs: 0, stallMs: 0, neighbourMs: 0, growthBytes: 0 }
  return {
    worst,
    idle,
    async during(row) {
      const me = await stage.sandbox()
      const before = { id: me.id, files: await stage.engine.hostFiles(me.id) }
      collectGarbage()
      const memoryBefore = memory()
      await control.report()
      loop.reset()
      const probing = new AbortController()
      const neighbour = probeNeighbour(stage, probing.signal)
      try {
        await row()
      } finally {
        probing.abort()
        await Promise.allSettled([neighbour])
      }
      const stallMs = Math.max(0, loop.max / 1e6 - LOOP_LOOKS_MS)
      const answers = await answerTimes(await stage.sandbox(), 3)
      const [controlNow, neighbourMs] = await Promise.all([control.report(), neighbour])
      collectGarbage()
      const memoryNow = memory()
      const rssGrowth = memoryNow.rss - memoryBefore.rss
      const growthBytes =
        rssGrowth > KEPT_BYTES ? rssGrowth : Math.min(rssGrowth, memoryNow.live - memoryBefore.live)
      const seen = {
        answerMs: Math.min(...answers),
        stallMs,
        neighbourMs: Math.max(...neighbourMs),
        growthBytes,
      }
      for (const key of ['answerMs', 'stallMs', 'neighbourMs', 'growthBytes'] as const)
        worst[key] = Math.max(worst[key], seen[key])
      const broken = [
        ...(await leftovers(await stage.sandbox())),
        ...(await newHostFiles(stage, before)),
        ...(await overBudget(await stage.sandbox())),
      ]
      return { broken, slow: tooMuch(seen, idle, controlNow) }
    },
    async close() {
      loop.disable()
      await control.close()
    },
  }
}

function memory(): { rss: number; live: number } {
  const { rss, heapUsed, external } = process.memoryUsage()
  return { rss, live: heapUsed + external }
}

function tooMuch(
  seen: Worst,
  idle: Watch['idle'],
  control: { stallMs: number; spawnMs: number[] },
): string[] {
  const spawnNow = Math.max(idle.spawnMs, ...control.spawnMs)
  const allowed = {
    answerMs: Math.max(ANSWER_MS, LOADED * spawnNow),
    stallMs: STALL_MS + LOADED * control.stallMs,
    neighbourMs: Math.max(ANSWER_MS, NEIGHBOUR * idle.trueMs, LOADED * spawnNow),
    growthBytes: GROWTH_BYTES,
  }
  const words = {
    answerMs: 'ms until the supervisor answered',
    stallMs: 'ms of event loop stall in the controller',
    neighbourMs: "ms for the neighbour's `true`",
    growthBytes: 'bytes of growth of the controller',
  }
  return (['answerMs', 'stallMs', 'neighbourMs', 'growthBytes'] as const)
    .filter((key) => seen[key] > allowed[key])
    .map((key) => `${Math.round(seen[key])} ${words[key]}, ${Math.round(allowed[key])} are allowed`)
}

// ── Times ───────────────────────────────────────────────────────────────────────────────────────────────

async function idleTimes(stage: Stage, control: Control): Promise<Watch['idle']> {
  await Promise.all([answerTimes(await stage.sandbox(), 5), answerTimes(await stage.neighbourSandbox(), 5)])
  const times = await answerTimes(await stage.neighbourSandbox(), 30)
  while ((await control.report()).spawnMs.length === 0) await sleep(50)
  const spawns: number[] = []
  for (let i = 0; i < 10; i += 1) {
    const from = performance.now()
    await once(spawn('sh', ['-c', 'true'], { stdio: 'ignore' }), 'exit')
    spawns.push(performance.now() - from)
  }
  return { trueMs: Math.max(...times), spawnMs: Math.max(...spawns) }
}

/** Durations of consecutive `true`. Rejects when one takes longer than ten seconds. */
async function answerTimes(sandbox: Sandbox, count: number): Promise<number[]> {
  const times: number[] = []
  for (let i = 0; i < count; i += 1) {
    const from = performance.now()
    const running = await orSilent(
      sandbox.run({ id: randomBytes(16).toString('hex'), command: 'true', autoAcknowledge: true }),
    )
    for await (const _ of running.output) throw new Error('`true` printed something')
    const { code } = await orSilent(running.exit)
    if (code !== 0) throw new Error(`\`true\` ended with ${code}`)
    times.push(performance.now() - from)
  }
  return times
}

function orSilent<T>(answer: Promise<T>): Promise<T> {
  return Promise.race([
    answer,
    sleep(20_000, undefined, { ref: false }).then(() => {
      throw new Error('the sandbox did not answer within 20 s')
    }),
  ])
}

/** Runs `true` in the neighbour's sandbox every 100 ms until `stop`, at least five times. */
async function probeNeighbour(stage: Stage, stop: AbortSignal): Promise<number[]> {
  const times: number[] = []
  while (!stop.aborted || times.length < 5) {
    times.push(...(await answerTimes(await stage.neighbourSandbox(), 1)))
    if (!stop.aborted) await sleep(100, undefined, { signal: stop }).catch(() => undefined)
  }
  return times
}

// ── What is left ────────────────────────────────────────────────────────────────────────────────────────

const INVENTORY = `${STRANGERS}; awk 'FNR > 1' /proc/sysvipc/shm /proc/sysvipc/msg /proc/sysvipc/sem; ls -A /dev/mqueue 2>/dev/null; find /workspace /tmp /run /dev/shm -name 'core*' -type f 2>/dev/null`

/** Processes of ended commands, SysV and POSIX objects, core files. Waits a moment for what is on its way out. */
async function leftovers(sandbox: Sandbox): Promise<string[]> {
  let found: string[] = []
  for (const until = performance.now() + 10_000; performance.now() < until; await sleep(100)) {
    const { output } = await shell(sandbox, INVENTORY)
    found = output.split('\n').filter(Boolean)
    if (found.length === 0) return []
  }
  return found.map((line) => `left behind: ${line}`)
}

/** A row may fill the workspace, but not leave it so. */
async function overBudget(sandbox: Sandbox): Promise<string[]> {
  const { disk } = await sandbox.stat()
  return disk.over
    ? [`the workspace is left above its budget: ${disk.bytes} bytes, ${disk.entries} entries`]
    : []
}

async function newHostFiles(stage: Stage, before: { id: string; files: string[] }): Promise<string[]> {
  const { id } = await stage.sandbox()
  const known = new Set(before.files)
  // A row that has its sandbox replaced has another container, with files of its own.
  const fresh = id === before.id ? (await stage.engine.hostFiles(id)).filter((path) => !known.has(path)) : []
  const free = await stage.engine.freeBytes()
  return [
    ...fresh.map((path) => `a new file on the host: ${path}`),
    ...(free !== undefined && free < FREE_FLOOR ? [`the engine's disk has only ${free} bytes left`] : []),
  ]
}
