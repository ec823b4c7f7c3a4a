/** `./sandlot bench sandbox --backend kubernetes`: the cost of a sandbox on a cluster, beside kubectl and Docker (docs/benchmarks.md). */
import Docker from 'dockerode'

import { runBench } from '../../../test/bench/run.ts'
import { testCluster } from '../../../test/cluster/cluster.ts'
import { coldStart, oneCall, warmClaim } from './cluster/calls.ts'
import { openContext } from './cluster/context.ts'
import { apiServerUnderLoad, idleMemory, reconciled } from './cluster/cost.ts'
import { afterApiServer, openedAnew } from './cluster/streams.ts'

await runBench({
  name: 'sandbox --backend kubernetes',
  goals: [
    { ids: ['K1'], measure: oneCall },
    { ids: ['K2'], measure: warmClaim },
    { ids: ['K3'], measure: coldStart },
    { ids: ['K4'], measure: openedAnew },
    { ids: ['K5'], measure: afterApiServer },
    { ids: ['K6'], measure: reconciled },
    { ids: ['K7'], measure: idleMemory },
    { ids: ['K8'], measure: apiServerUnderLoad },
  ],
  samples: 200,
  chapter: '# Sandboxes on Kubernetes',
  intro: [
    'A cluster of two nodes on this machine, as',
    'of `./sandlot test kubernetes`, and the machine’s own Docker, measured in turn. PSS is memory with shared pages counted in parts.',
  ],
  async open(args, stack) {
    const context = openContext(args, stack)
    const { serverVersion } = JSON.parse(await testCluster().kubectl('version', '-o', 'json')) as {
      serverVersion: { gitVersion: string }
    }
    const { Version } = (await new Docker().version()) as { Version: string }
    return { context, servers: [`Kubernetes ${serverVersion.gitVersion}`, `Docker Engine ${Version}`] }
  },
})
