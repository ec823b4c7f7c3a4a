/**
 * Builds the programs of `peers/` into the cache: `node --conditions=sandlot-source packages/ai-agent/test/peers/build.ts`.
 * With SANDLOT_TEST_FULL=true also those that are compiled for minutes.
 */
import { testConfig } from '../../../../test/config.ts'
import { LITELLM } from './litellm.ts'
import { LLAMA_CPP } from './llama-cpp.ts'
import { buildPeer } from '../../../../test/peer-cache.ts'

for (const program of testConfig().full ? [LITELLM, LLAMA_CPP] : [LITELLM]) {
  const label = `${program.name} ${program.version}`
  try {
    console.log(`${label}: ${await buildPeer(program)}`)
  } catch (error) {
    console.log(`${label} was not built, so its tests are skipped: ${String(error)}`)
  }
}
