/** A webhook of the cluster changes Pods of sandboxes: nothing of what it adds runs, and its name or its change is said. */
import { execFile } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { createServer, type Server } from 'node:https'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { promisify } from 'node:util'

import { afterEach, beforeEach, describe, expect, test } from 'vitest'

import { sample } from '../../../../../test/campaign.ts'
import { noOwnCluster, testCluster } from '../../../../../test/cluster/cluster.ts'
import { CONTROL } from '../../../../../test/cluster/parts.ts'
import type { PatchOperation } from '../../../src/backends/kubernetes/objects.ts'
import { podTemplate } from '../../../src/backends/kubernetes/pod-template.ts'
import { DEFAULT_LIMITS } from '../../../src/limits.ts'
import { newSlotName, poolName } from '../../../src/names.ts'
import { image } from '../../backends/kubernetes/policy-cases.ts'
import { installPolicies } from '../../backends/kubernetes/policy-fixture.ts'
import { kubernetesFixture, type KubernetesFixture } from '../../support/kubernetes-fixture.ts'
import { say } from '../say.ts'

let folder: string
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'sandlot-webhook-'))
})
afterEach(() => rm(folder, { recursive: true, force: true }))

interface Webhook extends AsyncDisposable {
  /** Pods that it was asked about. */
  asked: number
}

/** Changes each Pod of a namespace, at its creation or at a later change. */
async function startWebhook(
  namespace: string,
  operation: 'CREATE' | 'UPDATE',
  patch: readonly PatchOperation[],
): Promise<Webhook> {
  const { kubectl } = testCluster()
  const [key, cert] = [join(folder, 'key.pem'), join(folder, 'cert.pem')]
  const name = ['-subj', '/CN=webhook', '-addext', `subjectAltName=IP:${CONTROL}`]
  const made = ['-newkey', 'rsa:2048', '-nodes', '-keyout', key, '-out', cert]
  await promisify(execFile)('openssl', ['req', '-x509', '-days', '2', ...made, ...name])
  const webhook: Webhook = {
    asked: 0,
    async [Symbol.asyncDispose]() {
      await kubectl('delete', 'mutatingwebhookconfiguration', namespace)
      server.close()
      server.closeAllConnections()
    },
  }
  const server: Server = createServer(
    { key: await readFile(key), cert: await readFile(cert) },
    (request, response) => {
      void text(request).then((body) => {
        webhook.asked += 1
        const { uid } = (JSON.parse(body) as { request: { uid: string } }).request
        const changes = Buffer.from(JSON.stringify(patch)).toString('base64')
        const answer = { uid, allowed: true, patchType: 'JSONPatch', patch: changes }
        response.setHeader('content-type', 'application/json')
        response.end(
          JSON.stringify({ apiVersion: 'admission.k8s.io/v1', kind: 'AdmissionReview', response: answer }),
        )
      })
    },
  )
  await once(server.listen(0, CONTROL), 'listening')
  const file = join(folder, 'webhook.json')
  const clientConfig = {
    url: `https://${CONTROL}:${(server.address() as AddressInfo).port}/`,
    caBundle: (await readFile(cert)).toString('base64'),
  }
  await writeFile(
    file,
    JSON.stringify({
      apiVersion: 'admissionregistration.k8s.io/v1',
      kind: 'MutatingWebhookConfiguration',
      metadata: { name: namespace },
      webhooks: [
        {
          name: 'injector.test.sandlot.dev',
          clientConfig,
          rules: [{ apiGroups: [''], apiVersions: ['v1'], operations: [operation], resources: ['pods'] }],
          namespaceSelector: { matchLabels: { 'kubernetes.io/metadata.name': namespace } },
          failurePolicy: 'Fail',
          sideEffects: 'None',
          admissionReviewVersions: ['v1'],
        },
      ],
    }),
  )
  await kubectl('create', '-f', file)
  return webhook
}

const sidecar = { name: 'sidecar', image: 'localhost/pause:test' }
const add = (path: string, value: unknown): PatchOperation => ({ op: 'add', path: `/spec/${path}`, value })

const CHANGES: Record<string, PatchOperation[]> = {
  'a container': [add('containers/-', sidecar)],
  'an init container': [add('initContainers/0', sidecar)],
  'a volume': [add('volumes/-', { name: 'x', hostPath: { path: '/' } })],
  'a mounted volume': [
    add('volumes/-', { name: 'x', emptyDir: {} }),
    add('containers/0/volumeMounts/-', { name: 'x', mountPath: '/x' }),
  ],
  'a variable': [add('containers/0/env/-', { name: 'LD_PRELOAD', value: '/workspace/x.so' })],
  'a variable from a Secret': [
    add('containers/0/env/-', { name: 'X', valueFrom: { secretKeyRef: { name: 'x', key: 'x' } } }),
  ],
  'a lifecycle hook': [add('containers/0/lifecycle', { postStart: { exec: { command: ['id'] } } })],
  'another command': [{ op: 'replace', path: '/spec/containers/0/command', value: ['/bin/sleep'] }],
}

const OTHER_IMAGE: PatchOperation[] = [
  { op: 'replace', path: '/spec/containers/0/image', value: 'localhost/pause:test' },
]

const reason = noOwnCluster ?? 'of this run'
describe.skipIf(noOwnCluster !== undefined)(`a webhook that changes Pods (${reason})`, () => {
  describe('without the chart’s policy', () => {
    let fixture: KubernetesFixture
    beforeEach(async () => {
      fixture = await kubernetesFixture()
    })
    afterEach(() => fixture.dispose())
    const pods = (): Promise<string> => fixture.kubectl('get', 'pod', '-o', 'name')

    test.each(sample('changes by a webhook', Object.entries(CHANGES), 2))(
      '%s: in words, and the Pod is deleted',
      async (_, patch) => {
        const controller = fixture.controller()
        {
          await using webhook = await startWebhook(fixture.namespace, 'CREATE', patch)
          const words = await controller.acquire('ann').catch((error: unknown) => error)
          expect(webhook.asked).toBeGreaterThan(0)
          expect(words).toMatchObject({
            code: 'unsafe_host',
            message: expect.stringMatching(/admission changed the Pod .* not started. Exempt the namespace/),
          })
          expect(await pods()).toBe('')
          expect(await events()).not.toMatch(/Started|Scheduled/)
        }
        expect(await say(controller, 'echo works')).toBe('works')
      },
    )

    test('another image when the Pod is released: deleted, and no command is sent to it', async () => {
      const controller = fixture.controller()
      {
        await using webhook = await startWebhook(fixture.namespace, 'UPDATE', OTHER_IMAGE)
        await expect(controller.acquire('ann')).rejects.toMatchObject({ code: 'unsafe_host' })
        expect(webhook.asked).toBeGreaterThan(0)
        expect(await pods()).toBe('')
      }
      expect(await say(controller, 'echo works')).toBe('works')
    })

    const events = (): Promise<string> =>
      fixture.kubectl('get', 'events', '-o', 'jsonpath={.items[*].reason}')
  })

  test('with the chart’s policy: refused before it is stored, at its creation and later', async () => {
    const policies = await installPolicies('webhook', { images: [image] })
    try {
      const { namespace } = policies
      const slot = newSlotName()
      const volume = poolName('dep', slot)
      const spec = { name: volume, slot, uid: 31_234, volume, image, limits: DEFAULT_LIMITS, labels: {} }
      const settings = { namespace, memoryRequest: 0.25, userNamespaces: false, networkDown: true }
      const pod = podTemplate({ deployment: 'dep', spec, settings })
      const path = `/api/v1/namespaces/${namespace}/pods`
      const refused = {
        status: 422,
        body: { message: expect.stringMatching(/ValidatingAdmissionPolicy .* denied request: sandlot: /) },
      }
      for (const [what, patch] of Object.entries(CHANGES)) {
        await using webhook = await startWebhook(namespace, 'CREATE', patch)
        expect(await policies.agent('POST', path, pod), what).toMatchObject(refused)
        expect(webhook.asked, what).toBe(1)
      }
      expect(await policies.agent('POST', path, pod)).toMatchObject({ status: 201 })
      await using webhook = await startWebhook(namespace, 'UPDATE', OTHER_IMAGE)
      const open = [{ op: 'remove', path: '/spec/schedulingGates' }]
      const type = 'application/json-patch+json'
      expect(await policies.agent('PATCH', `${path}/${pod.metadata.name}`, open, type)).toMatchObject(refused)
      expect(webhook.asked).toBe(1)
    } finally {
      await policies.remove()
    }
  })
})
