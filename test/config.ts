import { randomInt } from 'node:crypto'

/** What a test run was started with. `./sandlot test` always gives a seed, the same for every file. */
export function testConfig(): { seed: number; full: boolean } {
  const seed = process.env['SANDLOT_TEST_SEED']
  if (seed !== undefined && !/^\d{1,10}$/.test(seed))
    throw new Error(`SANDLOT_TEST_SEED is "${seed}", not a whole number`)
  return {
    seed: seed === undefined ? randomInt(2 ** 31 - 1) : Number(seed),
    full: process.env['SANDLOT_TEST_FULL'] === 'true',
  }
}
