/**
 * Builds the programs of a test cluster into the cache, for minutes at the first time. Ends with 1 and a sentence where
 * this machine can have none: `node --conditions=sandlot-source test/cluster/build.ts`.
 */
import { buildPeer } from '../peer-cache.ts'
import { KUBERNETES } from './tool.ts'

try {
  console.log(`Kubernetes: ${await buildPeer(KUBERNETES)}`)
} catch (error) {
  const { message, stderr = '' } = error as Error & { stderr?: string }
  console.log(`No test cluster, so its tests are skipped: ${stderr.trim().slice(-2_000) || message}`)
  process.exitCode = 1
}
