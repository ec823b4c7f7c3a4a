/** The test cluster itself: what other tests on it rely on. */
import { describe, expect, test } from 'vitest'
import { noCluster, testCluster } from './cluster.ts'

const skipped = (reason: string | undefined): string => (reason === undefined ? '' : ` (${reason})`)

describe.skipIf(noCluster !== undefined)(`a cluster${skipped(noCluster)}`, () => {
  test('gives a Pod names of services and a token of an account', async () => {
    const { kubectl, token, image } = testCluster()
    const pod = `names-${process.pid}`
    await kubectl('run', pod, `--image=${image}`, '--restart=Never', '--command', '--', 'sleep', '300')
    try {
      await kubectl('wait', '--for=condition=Ready', `pod/${pod}`, '--timeout=60s')
      const host = await kubectl('exec', pod, '--', 'getent', 'hosts', 'kubernetes.default.svc')
      expect(host).toMatch(/^\S+\s+kubernetes\.default\.svc/)
      expect((await token('default', 'default')).split('.')).toHaveLength(3)
    } finally {
      await kubectl('delete', 'pod', pod, '--grace-period=1')
    }
  })
})
