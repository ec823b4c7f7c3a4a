/** Commands that attack the way to their own sandbox: its relays, and limits that they share with sbxd by their uid. */
import { afterEach, beforeEach, describe, expect, test } from 'vitest'

import { begun } from '../../../../../test/hostile/row.ts'
import { ToolCaller } from '../../../../../test/hostile/tool-call.ts'
import { oneRunOfThree } from '../../../../../test/campaign.ts'
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
  const counting: SandboxBackend & { opened: number } = {
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

/**
 * Takes all watches of epoll that its uid may have: each of many epolls watches each of many
 * descriptors. Prints their number and the errno, kills the relay when there is the file `kill`, and
 * waits.
 */
const WATCHES = `exec python3 -c '
import os, select, time
total = 0
for child in range(8):
  read, write = os.pipe()
  if os.fork() == 0:
    events = [os.eventfd(0) for _ in range(2000)]
    polls, made, error = [], 0, 0
    try:
      for _ in range(2000):
        polls.append(select.epoll())
        for event in events:
          polls[-1].register(event, 1); made += 1
    except OSError as failed: error = failed.errno
    os.write(write, b"%d %d" % (made, error)); time.sleep(600)
  made, error = os.read(read, 100).split()
  total += int(made)
  if error != b"0": break
print(total, int(error), flush=True)
while not os.path.exists("kill"): time.sleep(0.1)
for pid in filter(str.isdigit, os.listdir("/proc")):
  if open(f"/proc/{pid}/comm").read() == "sbxd-relay\\n": os.kill(int(pid), 9)
time.sleep(10)'`

/** Until the hog’s time is over, and the kernel has taken back what it held. */
const WAIT = { timeout: 170_000, interval: 1_000 }

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

  test('all watches of epoll taken by its uid, then the relay killed: in words, and all works after it', async ({
    skip,
  }) => {
    oneRunOfThree('watches of epoll', skip)
    const controller = fixture.controller()
    const victim = new ToolCaller(controller, 'ann')
    const { bootId, files } = await controller.acquire('ann')
    const hog = await begun(victim, WATCHES, 300_000)
    expect(await victim.shell('echo other')).toMatchObject({
      reason: 'sandbox_unavailable',
      forModel: expect.stringContaining('no memory or descriptors for another command'),
    })
    await files.write('kill', Buffer.alloc(0))
    expect(await hog.ended).toMatchObject({ output: expect.stringMatching(/^\d{5,} 28\n$/) })
    await expect.poll(() => say(controller, 'echo works').catch(String), WAIT).toBe('works')
    expect((await controller.acquire('ann')).bootId).toBe(bootId)
  })
})
