import { randomInt } from 'node:crypto'
import { join } from 'node:path'

/** Options of the test run. `./sandlot test` passes one seed to all files. */
export function testConfig(): { seed: number; full: boolean; cluster: string | undefined } {
  const seed = process.env['SANDLOT_TEST_SEED']
  if (seed !== undefined && !/^\d{1,10}$/.test(seed))
    throw new Error(`SANDLOT_TEST_SEED is "${seed}", not a whole number`)
  return {
    seed: seed === undefined ? randomInt(2 ** 31 - 1) : Number(seed),
    full: process.env['SANDLOT_TEST_FULL'] === 'true',
    // The folder that `test/cluster/run.ts` made.
    cluster: process.env['SANDLOT_TEST_CLUSTER'],
  }
}

/** The cache of compiled sources halves what a start of Node costs; it knows by their bytes when they have changed. */
const NODE_COMPILE_CACHE = join(import.meta.dirname, '../node_modules/.cache/node-compile')

/** Variables that every Node process of a test needs. */
export function nodeEnvironment(): Record<string, string> & { PATH: string } {
  return {
    ...clockVariables(),
    PATH: process.env['PATH'] ?? '',
    // Alone, whether or not the machine has the larger one.
    SANDLOT_SANDBOX_IMAGE: 'sandlot/sandbox:latest',
    NODE_COMPILE_CACHE,
  }
}

/** Sandboxes without an engine: commands run as the user of the test. */
export const LOCAL_PROCESS = {
  SANDLOT_SANDBOX: 'local-process',
  SANDLOT_TEST_LOCAL_PROCESS: 'true',
} as const

/** Variables of faketime, if set: all processes must have the same clock. */
export function clockVariables(): Record<string, string> {
  const set = ['LD_PRELOAD', 'FAKETIME', 'DONT_FAKE_MONOTONIC'].flatMap((name) => {
    const value = process.env[name]
    return value === undefined ? [] : [[name, value]]
  })
  return Object.fromEntries(set)
}

/** The environment of the user who runs the tests, without any setting of Sandlot. */
export function personEnvironment(): Record<string, string> {
  const ours = /^(SANDLOT_|OPENAI_|VITEST|NODE_ENV$|NODE_OPTIONS$|PORT$|HOST$|LOG_LEVEL$|CI$)/
  const kept = Object.entries(process.env).flatMap(([name, value]) =>
    value === undefined || ours.test(name) ? [] : [[name, value]],
  )
  return { ...Object.fromEntries(kept), NODE_COMPILE_CACHE }
}
