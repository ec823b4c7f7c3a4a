/** Failures of agents whose sandboxes are on a cluster, and of its API server: the rows of `cluster-rows.ts`. */
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, onTestFailed, test } from 'vitest'
import { ownerTag } from '../../packages/sandbox/src/names.ts'
import { type ApiProxy, startApiProxy } from '../../packages/sandbox/test/support/api-proxy.ts'
import { postgresPrograms } from '../../packages/storage/test/support/postgres.ts'
import { sample } from '../campaign.ts'
import { noOwnCluster, ownCluster } from '../cluster/cluster.ts'
import { installOutside, sandboxAdmin } from '../cluster/outside-chart.ts'
import { clusterRows } from './cluster-rows.ts'
import { casesOf, runCase } from './matrix.ts'
import { openWorld, type World } from './world.ts'

const reason =
  noOwnCluster ?? (postgresPrograms === undefined ? 'no PostgreSQL: apt install postgresql' : undefined)

describe.skipIf(reason)(`agents on a cluster (${reason ?? 'of this run'})`, () => {
  const stack = new AsyncDisposableStack()
  const apis: ApiProxy[] = []
  const given = { apis, nextImage: '', cluster: ownCluster, imagesOf, stopAll }
  const environments: Record<string, string>[] = []
  let world: World
  let namespace: string
  beforeAll(async () => {
    const cluster = ownCluster()
    given.nextImage = cluster.image.replace('@', '-next@')
    await cluster.tagImage(given.nextImage)
    const chart = await installOutside(cluster, stack, [cluster.image, given.nextImage])
    namespace = chart.namespace
    world = await openWorld(postgresPrograms ?? '', 2, stack, {
      async engines(number) {
        const api = await startApiProxy(
          cluster.agentServer(number === 0 ? 1 : 2),
          join(cluster.facts.tool, 'pki'),
        )
        apis[number] = api
        const environment = {
          // No engine: nothing may ask for one.
          DOCKER_HOST: 'unix:///nonexistent/docker.sock',
          SANDLOT_SANDBOX: 'kubernetes',
          SANDLOT_SANDBOX_IMAGE: cluster.image,
          SANDLOT_KUBERNETES_NAMESPACE: namespace,
          SANDLOT_KUBERNETES_KUBECONFIG: chart.kubeconfigFor(api.server),
        }
        environments[number] = environment
        return { engine: api, environment }
      },
    })
  }, 240_000)
  afterAll(() => stack.disposeAsync(), 120_000)

  test.each(
    sample('agents on a cluster', casesOf(clusterRows(given)), 1).map((one) => [one.name, one] as const),
  )('%s', { timeout: 240_000 }, async (_name, one) => {
    onTestFailed(() => {
      mkdirSync('test-results', { recursive: true })
      writeFileSync('test-results/failed-replicas-cluster.log', world.sandlot.logs())
    })
    console.log(await runCase(world, one))
  })

  /** Images of this person's Pods. */
  async function imagesOf(person: string): Promise<string[]> {
    const keys = readFileSync(join(world.sandlot.data, 'keys/deployment.json'), 'utf8')
    const { key } = JSON.parse(keys) as { key: string }
    const owner = `sandlot.dev/owner=${ownerTag(Buffer.from(key, 'base64'), person)}`
    const images = 'jsonpath={.items[*].spec.containers[*].image}'
    return (await ownCluster().kubectl('get', 'pods', '-n', namespace, '-l', owner, '-o', images)).split(' ')
  }

  async function stopAll(): Promise<void> {
    const environment = { ...environments[0], DATABASE_URL: world.database }
    expect(await sandboxAdmin(world.sandlot, environment, 'stop')).not.toEqual([])
  }
})
