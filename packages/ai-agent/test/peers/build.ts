/** Builds the programs of `peers/` into the cache: `node --conditions=sandlot-source packages/ai-agent/test/peers/build.ts`. */
import { buildPeer } from './peer-cache.ts'
import { LITELLM } from './litellm.ts'

for (const program of [LITELLM]) {
  const label = `${program.name} ${program.version}`
  try {
    console.log(`${label}: ${await buildPeer(program)}`)
  } catch (error) {
    console.log(`${label} was not built, so its tests are skipped: ${String(error)}`)
  }
}
