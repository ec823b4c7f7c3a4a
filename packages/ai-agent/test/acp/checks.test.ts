/** The agent's own checks, on a machine without an engine. */
import { beforeEach, expect, test } from 'vitest'
import { agentChecks } from '../../src/acp/checks.ts'
import { testFolder } from '../../../../test/folders.ts'

let folder: string
beforeEach(() => void (folder = testFolder('checks')))

const kubernetes = {
  access: { namespace: 'none', environment: {} },
  settings: { memoryRequest: 0.25, userNamespaces: false, networkDown: true },
  streamRate: 1,
}
const sandbox = {
  kubernetes,
  dockerHost: undefined,
  tls: undefined,
  images: { image: 'x:1' },
  runtime: undefined,
}

test('over folders the isolation, the leftovers and the model are what is said', async () => {
  const config = {
    dataFolder: folder,
    deployment: undefined,
    sandbox: { ...sandbox, backend: 'local-process' as const },
  }
  const found = await agentChecks({ config, model: undefined, ownerless: async () => ['stray'] })
  expect(found.map(({ id, state }) => `${id} ${state}`)).toEqual([
    'node ok',
    expect.stringMatching(/^data /),
    'model ok',
    'isolation failed',
    'ownerless-volumes failed',
  ])
})

test('an engine that does not answer is a finding, with the gate that leads there', async () => {
  const dockerHost = `unix://${folder}/gate.sock`
  const config = {
    dataFolder: folder,
    deployment: 'd1',
    sandbox: { ...sandbox, dockerHost, backend: 'docker' as const },
  }
  const ownerless = () => Promise.reject(new Error('No engine.'))
  const found = await agentChecks({ config, model: 'gpt-5', ownerless })
  expect(found.find(({ id }) => id === 'engine')).toMatchObject({ group: 'must', state: 'failed' })
  expect(found.find(({ id }) => id === 'engine-gate')).toMatchObject({ state: 'ok' })
  expect(found.find(({ id }) => id === 'model')).toMatchObject({ message: 'gpt-5' })
  expect(found.find(({ id }) => id === 'ownerless-volumes')).toMatchObject({ state: 'unknown' })
})
