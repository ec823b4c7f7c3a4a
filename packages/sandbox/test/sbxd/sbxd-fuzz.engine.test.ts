import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdir, mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'

import { afterAll, beforeAll, expect, test } from 'vitest'

import { campaign, extent, sample } from '../../../../test/campaign.ts'
import { analyse, buildFuzzer, buildSanitizedSbxd, cFiles, whyNoFuzzer } from '../support/build-sbxd.ts'
import { testBackend } from '../support/contract.ts'
import { writeFuzzSeeds } from './fuzz-seeds.ts'
import { localProcessFixture } from '../support/local-process-fixture.ts'

const FUZZ_SECONDS = extent(5, 600)

const noFuzzer = whyNoFuzzer()

let directory: string
/**
 * Made while the others are: each is one compiler's work, and the machine has more than one CPU.
 */
let made: { fuzzer: Promise<string>; sanitized: Promise<string> }
beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), 'sandlot-fuzz-'))
  if (noFuzzer !== undefined) return
  made = { fuzzer: buildFuzzer(directory), sanitized: buildSanitizedSbxd(directory) }
  await Promise.all([made.fuzzer, made.sanitized])
}, 300_000)
afterAll(() => rm(directory, { recursive: true, force: true }))

test.skipIf(noFuzzer)(
  `no input makes the supervisor misuse memory, grow or hang${noFuzzer ? ` (skipped: ${noFuzzer})` : ''}`,
  async () => {
    const fuzzer = await made.fuzzer
    const [found, seeds, workspace] = ['found', 'seeds', 'workspace'].map((name) => join(directory, name))
    if (!found || !seeds || !workspace) throw new Error('no folders')
    await mkdir(found)
    await mkdir(workspace)
    await writeFuzzSeeds(seeds)
    const child = spawn(
      fuzzer,
      [
        `-max_total_time=${FUZZ_SECONDS}`,
        `-seed=${(campaign.seed % 0x7fff_fffe) + 1}`,
        '-max_len=8192',
        '-timeout=60',
        '-rss_limit_mb=1024',
        `-artifact_prefix=${directory}/`,
        found,
        seeds,
      ],
      { cwd: directory, env: { SBXD_FUZZ_WORKSPACE: workspace }, stdio: ['ignore', 'ignore', 'pipe'] },
    )
    const [said, [code]] = await Promise.all([text(child.stderr), once(child, 'exit')])
    // The last words name the input that broke it, in base64.
    expect(code, said.slice(-20_000)).toBe(0)
    const covered = Number(/INITED cov: (\d+)/.exec(said)?.[1])
    console.log(`${/INITED .*/.exec(said)?.[0]} → ${/DONE .*/.exec(said)?.[0]}`)
    expect(covered, 'the seeds no longer reach the commands').toBeGreaterThan(800)
  },
  (FUZZ_SECONDS + 300) * 1_000,
)

test('the analyser has nothing to say', async () => {
  await analyse(sample('analyser', await cFiles(), 3))
}, 600_000)

if (noFuzzer) test.skip(`a sanitized sbxd (${noFuzzer})`)
else
  testBackend({
    name: 'a sanitized sbxd',
    quick: !campaign.full,
    open: () => localProcessFixture(() => made.sanitized),
  })
