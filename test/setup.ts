/** Before every test file: properties draw from the seed of this run, and many more samples in a full one. */
import fc from 'fast-check'
import { afterAll } from 'vitest'
import { testConfig } from './config.ts'

const { seed, full } = testConfig()
fc.configureGlobal({ seed, ...(full ? { numRuns: 2_000 } : {}) })

// Hono's server puts its own in their place; the next test file of this process gets the platform's.
const { Request, Response } = globalThis
afterAll(() => void Object.assign(globalThis, { Request, Response }))
