/** Commands that attack the way to their own sandbox. */
import { afterEach, beforeEach, describe, expect, test } from 'vitest'

import { ToolCaller } from '../../../../../test/hostile/tool-call.ts'
import { noCluster } from '../../../../../test/cluster/cluster.ts'
import type { SandboxBackend } from '../../../src/backend.ts'
import { kubernetesFixture, type KubernetesFixture } from '../../support/kubernetes-fixture.ts'
import { say } from '../say.ts'

let fixture: KubernetesFixture
beforeEach(async () => {
  fixture = await kubernetesFixture()
})
afterEach(() => fixture.dispose())

/** The backend, and the number of streams that it opened. */
function counted(backend: SandboxBackend): SandboxBackend & { opened: number } {
  const counting = {
    ...backend,
    opened: 0,
    async open(...args: Parameters<SandboxBackend['open']>) {
      const made = await backend.open(...args)
      counting.opened += 1
      return made
    },
  }
  return counting
}

/** Kills every relay that it sees, and prints between, so that its call has progress. */
const KILLER = `exec perl -e '$| = 1; my $end = time + $ARGV[0];
while (time < $end) {
  for (glob "/proc/[0-9]*") {
    open(my $f, "<", "$_/comm") or next; my $name = <$f> // "";
    if ($name eq "sbxd-relay\n") { m{(\\d+)$}; kill 9, $1; print "killed\n" }
  }
  select undef, undef, undef, 0.005;
}'`

const reason = noCluster ?? 'on a cluster'
describe.skipIf(noCluster !== undefined)(`a command against its relay (${reason})`, () => {
  test('killed in a loop: five tries, then a sentence, and no storm; a stop of the sandbox helps', async () => {
    const backend = counted(fixture.backend)
    const controller = fixture.controller({ backend })
    await say(controller, 'echo mine >kept')
    const before = backend.opened
    const victim = new ToolCaller(controller, 'ann')
    const result = await victim.shell(`${KILLER} 100`, { timeoutMs: 100_000 })
    const sentence = /ended its connection 5 times within 60 s. .*stop the sandbox/
    expect(result).toMatchObject({ status: 'failed', reason: 'sandbox_unavailable' })
    expect(result.forModel).toMatch(sentence)
    // With the stream that there was, five; one may have ended before its exit code was said.
    const opened = backend.opened - before
    expect(opened).toBeLessThan(7)
    for (let n = 0; n < 20; n += 1)
      await expect(controller.acquire('ann')).rejects.toMatchObject({
        code: 'limit_reached',
        message: expect.stringMatching(sentence),
      })
    expect(backend.opened - before).toBe(opened)
    await controller.stop('ann')
    expect(await say(controller, 'cat kept')).toBe('mine')
  })
})
