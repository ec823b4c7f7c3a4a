/** The end of a Pod, for the one whose command ran in it. */
import { expect, test } from 'vitest'

import type { ObjectMeta, Pod } from '../../../src/backends/kubernetes/objects.ts'
import { podEnd, podProblem } from '../../../src/backends/kubernetes/pod-problem.ts'

const KILLED = { exitCode: 137, reason: 'OOMKilled' }

function ended(terminated: { exitCode: number; reason: string }, metadata: Partial<ObjectMeta> = {}): Pod {
  return {
    metadata: { name: 'sbx-team-abcdefgh-1', ...metadata },
    spec: { containers: [] },
    status: {
      phase: 'Failed',
      containerStatuses: [{ name: 'sbxd', ready: false, restartCount: 0, state: { terminated } }],
    },
  }
}

test.each([
  ['the kernel killed all of it', ended(KILLED), 'out_of_memory'],
  // The runtime has that reason from a command that was killed an hour before.
  ['sbxd exited later', ended({ exitCode: 0, reason: 'OOMKilled' }), 'sandbox_lost'],
  ['deleted later', ended(KILLED, { deletionTimestamp: '2026-01-01T00:00:00Z' }), 'sandbox_lost'],
])('out of memory is told apart from a lost sandbox: %s', (_, pod, code) => {
  expect(podEnd(pod)?.code).toBe(code)
})

test('an image without the program that prepares a Pod is named as the likely cause', () => {
  const pod: Pod = {
    metadata: { name: 'sbx-team-abcdefgh-1' },
    spec: { containers: [] },
    status: {
      phase: 'Failed',
      initContainerStatuses: [
        {
          name: 'prepare',
          ready: false,
          restartCount: 0,
          state: { terminated: { exitCode: 1, reason: 'Error' } },
        },
      ],
    },
  }
  expect(podProblem(pod, undefined)).toMatchObject({
    isFinal: true,
    error: {
      code: 'engine_unavailable',
      message: expect.stringMatching(/exit code 1.*--container prepare.*version/),
    },
  })
})
