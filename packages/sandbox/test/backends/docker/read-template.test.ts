import fc from 'fast-check'
import { expect, test } from 'vitest'

import { createTemplate } from '../../../src/backends/docker/create-template.ts'
import { readTemplate } from '../../../src/backends/docker/read-template.ts'

const MiB = 1024 * 1024

/** A change of the template shows here that the engine gate could no longer read it. */
test('the parts of a template are read back from it', () => {
  const limits = fc.record({
    memoryBytes: fc.integer({ min: 2048, max: 8192 }).map((count) => count * MiB),
    cpus: fc.integer({ min: 1, max: 160 }).map((tenths) => tenths / 10),
    pids: fc.integer({ min: 16, max: 4096 }),
    tmpBytes: fc.integer({ min: 1, max: 256 }).map((count) => count * MiB),
    diskBytes: fc.integer({ min: 64, max: 65_536 }).map((count) => count * MiB),
    openFiles: fc.integer({ min: 64, max: 65_536 }),
  })
  fc.assert(
    fc.property(limits, fc.integer({ min: 30_000, max: 59_999 }), (chosen, uid) => {
      const spec = {
        name: 'sbx-dep-abcdefgh',
        slot: 'abcdefgh',
        volume: 'sbx-dep-abcdefgh',
        image: 'sandlot/sandbox:latest',
        labels: { 'sandlot.extra': 'x' },
        uid,
        limits: chosen,
      }
      const body = createTemplate({
        deployment: 'dep',
        spec,
        imageId: 'sha256:1234',
        seccompProfile: '{}',
        engine: { cgroup: 'v2', cpus: 2 },
        fingerprint: 'f00d',
      })
      expect(readTemplate(JSON.parse(JSON.stringify(body)))).toEqual({
        slot: 'abcdefgh',
        volume: 'sbx-dep-abcdefgh',
        imageId: 'sha256:1234',
        fingerprint: 'f00d',
        seccompProfile: '{}',
        labels: spec.labels,
        uid,
        limits: chosen,
      })
    }),
    { numRuns: 100 },
  )
})

test.each([null, 1, [], {}, { Image: 'x' }, { HostConfig: { Mounts: [], Tmpfs: {} } }])(
  '%j is no template',
  (value) => {
    expect(readTemplate(value)).toBeUndefined()
  },
)
