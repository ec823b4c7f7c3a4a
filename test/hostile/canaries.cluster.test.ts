/** I10 for a cluster: whose sandboxes they are, and what runs in them, is in nothing that it stores or logs. */
import { randomBytes } from 'node:crypto'

import { expect, onTestFinished, test } from 'vitest'

import { kubernetesFixture } from '../../packages/sandbox/test/support/kubernetes-fixture.ts'
import { noOwnCluster, ownCluster } from '../cluster/cluster.ts'
import { contentsWith } from '../cluster/contents.ts'
import { ToolCaller } from './tool-call.ts'

test.skipIf(noOwnCluster !== undefined)(
  'no name, address, command, file or output of a person is in an object, an event, a log, an audit or the store',
  async () => {
    const fixture = await kubernetesFixture()
    onTestFinished(() => fixture.dispose())
    const canary = randomBytes(8).toString('hex')
    const controller = fixture.controller()
    const me = new ToolCaller(controller, `Ada Canary-${canary} <ada.canary-${canary}@example.org>`)
    const { status } = await me.call('write_file', { path: `file-${canary}`, content: `content-${canary}` })
    expect(status).toBe('completed')
    expect((await me.shell(`cat file-${canary}; echo ${canary}`)).output).toContain(`content-${canary}`)
    // One whose start fails, and a sandbox that ends by a signal to its relay, have events of their own.
    const image = `localhost/sandlot/none@sha256:${'0'.repeat(64)}`
    const failing = fixture.controller({ image })
    await expect(failing.acquire(`Bob ${canary}`)).rejects.toMatchObject({ code: 'engine_unavailable' })
    await me.shell('kill -9 -1')
    expect((await me.shell('echo on')).output).toBe('on\n')

    const cluster = ownCluster()
    const known = await contentsWith(cluster, [fixture.namespace, 'command=relay'])
    for (const place of ['objects: ', 'audit.log: command=relay', 'etcd/', 'log/kubelet', 'meta.db: '])
      expect(known).toContainEqual(expect.stringContaining(place))
    expect(await contentsWith(cluster, [canary])).toEqual([])
  },
)
