/** Before every test file: properties draw from the seed of this run, and many more samples in a full one. */
import fc from 'fast-check'
import { testConfig } from './config.ts'

const { seed, full } = testConfig()
fc.configureGlobal({ seed, ...(full ? { numRuns: 2_000 } : {}) })
