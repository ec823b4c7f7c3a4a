/** Deployments of one goal, on the cluster and on the local Docker. */
import type { BenchArguments } from '../../../../test/bench/run.ts'
import { type DockerFixture, dockerFixture } from '../../test/support/docker-fixture.ts'
import { type KubernetesFixture, kubernetesFixture } from '../../test/support/kubernetes-fixture.ts'

export interface ClusterContext extends BenchArguments {
  /** Runs a goal on deployments of its own, which end with it. */
  deployed: <T>(measure: (cluster: KubernetesFixture, docker: DockerFixture) => Promise<T>) => Promise<T>
}

export function openContext(args: BenchArguments, stack: AsyncDisposableStack): ClusterContext {
  return {
    ...args,
    async deployed(measure) {
      await using ended = stack.use(new AsyncDisposableStack())
      const docker = await dockerFixture()
      ended.defer(() => docker.dispose())
      const cluster = await kubernetesFixture()
      ended.defer(() => cluster.dispose())
      return await measure(cluster, docker)
    },
  }
}

export const people = (count: number): string[] => Array.from({ length: count }, (_, n) => `person-${n}`)
