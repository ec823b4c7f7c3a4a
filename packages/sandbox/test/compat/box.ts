import { afterAll, beforeAll, test } from 'vitest'

import { campaign, sample } from '../../../../test/campaign.ts'
import type { Sandbox } from '../../src/sandbox.ts'
import { dockerFixture, type DockerFixture, shell } from '../support/docker-fixture.ts'

/**
 * One piece of honest work: shell text that ends with 0 when everything is as its author expects.
 */
export interface Work {
  title: string
  /** Run with `set -euo pipefail` in an empty directory of its own. */
  script: string
  /** Takes too long for an ordinary run. */
  slow?: boolean
}

/**
 * One sandbox with the default limits and no network, for all tests of a file. Declares `count` of
 * the cases as drawn by the seed (none of the slow ones), or all of them in a full run.
 */
export function compatible<T extends { title: string; slow?: boolean }>(
  name: string,
  cases: readonly T[],
  count: number,
  check: (sandbox: Sandbox, work: T) => Promise<void>,
): void {
  let docker: DockerFixture
  let sandbox: Sandbox
  beforeAll(async () => {
    docker = await dockerFixture()
    sandbox = await docker.controller().acquire('worker')
  })
  afterAll(async () => {
    await docker.dispose()
  })
  const drawn = cases.filter(({ slow }) => campaign.full || slow !== true)
  for (const work of sample(name, drawn, count)) test(work.title, () => check(sandbox, work))
}

/** Throws with everything that was printed unless the script succeeds. */
export async function succeed(sandbox: Sandbox, { title, script }: Work): Promise<void> {
  const directory = title.replaceAll(/[^a-z0-9]+/gi, '-')
  const { code, signal, output } = await shell(
    sandbox,
    `mkdir -p '${directory}'; cd '${directory}'; set -euo pipefail\n${script}`,
  )
  if (code !== 0) throw new Error(`"${title}" ended with ${code ?? signal}:\n${output.slice(-4_000)}`)
}
