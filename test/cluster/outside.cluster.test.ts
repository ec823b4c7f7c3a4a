/** Agents outside of the cluster, with a token: the chart has only what the sandboxes need. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { examineKubernetes } from '../../packages/sandbox/src/doctor/cluster.ts'
import { postgresPrograms, startPostgres } from '../../packages/storage/test/support/postgres.ts'
import { startSandlot } from '../e2e/processes.ts'
import { people, startProvider } from '../replicas/world.ts'
import { type Cluster, noCluster, testCluster } from './cluster.ts'
import { installOutside, type OutsideChart, sandboxAdmin } from './outside-chart.ts'

const reason =
  noCluster ?? (postgresPrograms === undefined ? 'no PostgreSQL: apt install postgresql' : undefined)

describe.skipIf(reason)(`agents outside of the cluster (${reason ?? 'of this run'})`, () => {
  const stack = new AsyncDisposableStack()
  let cluster: Cluster
  let outside: OutsideChart
  beforeAll(async () => {
    cluster = testCluster()
    outside = await installOutside(cluster, stack)
  }, 180_000)
  afterAll(() => stack.disposeAsync(), 180_000)

  test('the doctor has no complaint about the rights, the policy or a sandbox, and leaves nothing', async () => {
    const { namespace, kubeconfig } = outside
    const findings = await examineKubernetes({
      kubernetes: {
        access: { namespace, kubeconfig, environment: {} },
        settings: { memoryRequest: 0.25, userNamespaces: false, networkDown: true },
        streamRate: 8_000_000,
      },
      image: cluster.image,
      attack: true,
    })
    expect(findings.filter(({ state }) => state !== 'ok')).toEqual([])
    expect(findings.map(({ id }) => id)).toEqual(
      expect.arrayContaining(['cluster-version', 'rights', 'policy', 'storage-class', 'network', 'nodes']),
    )
    const left = ['get', 'pods,persistentvolumeclaims', '-n', namespace, '-o', 'name']
    await expect.poll(() => cluster.kubectl(...left), { timeout: 30_000 }).toBe('')
  }, 180_000)

  test('two agents: a file survives the stop of its sandbox and of its agent; an administrator removes all', async () => {
    const { namespace, kubeconfig } = outside
    const postgres = await startPostgres(postgresPrograms ?? '')
    stack.defer(() => postgres.stop())
    const provider = await startProvider()
    stack.defer(() => provider.close())
    const database = await postgres.database('outside')
    const agent = {
      OPENAI_BASE_URL: provider.baseUrl,
      OPENAI_API_KEY: 'sk-test-canary',
      OPENAI_MODEL: 'scripted',
      // No engine: nothing may ask for one.
      DOCKER_HOST: 'unix:///nonexistent/docker.sock',
      SANDLOT_SANDBOX: 'kubernetes',
      SANDLOT_SANDBOX_IMAGE: cluster.image,
      SANDLOT_KUBERNETES_NAMESPACE: namespace,
      SANDLOT_KUBERNETES_KUBECONFIG: kubeconfig,
    }
    const sandlot = await startSandlot({ database, replicas: 2, agent })
    stack.defer(() => sandlot.stop())
    const ada = await people(sandlot)()
    const said = async (message: string): Promise<string> => {
      const one = ada.say(message)
      await one.done
      return one.text
    }
    expect(await said('run id -u; echo kept > file; hostname')).toMatch(/sandbox/)
    const pods = ['get', 'pods', '-n', namespace, '-o', 'name']
    expect(await cluster.kubectl(...pods)).toMatch(/^pod\/sbx-\S+\n$/)

    const admin = (act: string, kube: string): Promise<unknown> =>
      sandboxAdmin(sandlot, { ...agent, DATABASE_URL: database, SANDLOT_KUBERNETES_KUBECONFIG: kube }, act)
    expect(await admin('stop', kubeconfig)).toHaveLength(1)
    expect(await cluster.kubectl(...pods)).toBe('')
    await Promise.all(sandlot.agents.map((one) => one.end('SIGKILL')))
    await Promise.all(sandlot.agents.map((one) => one.start()))
    expect(await said('run cat file')).toContain('kept')

    for (const one of sandlot.agents) await one.end('SIGTERM')
    const claims = ['get', 'persistentvolumeclaims', '-n', namespace, '-o', 'name']
    // Files of people are removed by a person alone, which the policy holds the agents to.
    await expect(admin('purge', kubeconfig)).rejects.toThrow(/policy|Policy/)
    expect(await cluster.kubectl(...claims)).not.toBe('')
    expect(await admin('purge', cluster.kubeconfig)).toMatchObject({ volumes: 1 })
    expect(await cluster.kubectl(...claims)).toBe('')
  }, 400_000)
})
