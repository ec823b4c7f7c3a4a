/**
 * The doctor on a real engine: a good sandbox proves itself, one that is not ours in every way does
 * not.
 */
import { randomBytes } from 'node:crypto'

import { afterAll, beforeAll, expect, test } from 'vitest'

import { connectSandbox } from '../../src/sbxd/client.ts'
import { isSafe } from '@sandlot/shared/base/finding'
import { examineEngine, examineMachine } from '../../src/doctor/machine.ts'
import { judgeProof, probeSandbox, requireProof } from '../../src/controller/proof.ts'
import { deriveSandboxKey } from '../../src/controller/key.ts'
import { LABEL } from '../../src/names.ts'
import { testConfig } from '../support/config.ts'
import { docker, dockerFixture, type DockerFixture } from '../support/docker-fixture.ts'
import { looseBackend } from '../support/loose-backend.ts'

let fixture: DockerFixture
beforeAll(async () => {
  fixture = await dockerFixture()
})
afterAll(async () => {
  await fixture.dispose()
})

const here = {
  image: testConfig.image,
  dockerHost: testConfig.dockerHost,
}

test('this machine passes, every finding has an id of its own, and nothing is left of the sandbox', async () => {
  const findings = await examineMachine(here)
  expect(findings.filter(({ group, state }) => group === 'must' && state !== 'ok')).toEqual([])
  expect(new Set(findings.map(({ id }) => id)).size).toBe(findings.length)
  expect(findings.length).toBeGreaterThan(25)
  for (const kind of [
    ['ps', '-aq'],
    ['volume', 'ls', '-q'],
  ])
    expect(await docker(...kind, '--filter', 'name=doctor-')).toBe('')
})

test('an image that is not there and an engine that is not there fail, with what mends it', async () => {
  const noImage = await examineMachine({ ...here, image: 'sandlot/there-is-none:1' })
  expect(isSafe(noImage)).toBe(false)
  expect(noImage.find(({ id }) => id === 'sandbox')).toMatchObject({
    state: 'failed',
    fix: 'docker/build-images.sh',
  })
  const noEngine = await examineMachine({ ...here, dockerHost: 'unix:///nowhere/docker.sock' })
  expect(noEngine).toHaveLength(1)
  expect(noEngine[0]).toMatchObject({ id: 'engine', state: 'failed' })
})

test('next to sandboxes in use the engine and the image are judged, and none is created', async () => {
  const findings = await examineEngine(here)
  expect(findings.filter(({ group, state }) => group === 'must' && state !== 'ok')).toEqual([])
  expect(findings.find(({ id }) => id === 'image')).toMatchObject({ message: testConfig.image })
  expect(await docker('ps', '-aq', '--filter', 'name=doctor-')).toBe('')
  const noImage = await examineEngine({ ...here, image: 'sandlot/there-is-none:1' })
  expect(noImage.find(({ id }) => id === 'image')).toMatchObject({
    state: 'failed',
    fix: 'docker/build-images.sh',
  })
})

test('a sandbox without the hardening is seen to be one, and may not be used', async () => {
  const id = await docker(
    'create',
    '-i',
    ...[`${LABEL.deployment}=${fixture.deployment}`, `${LABEL.role}=sandbox`].flatMap((label) => [
      '--label',
      label,
    ]),
    '--security-opt=seccomp=unconfined',
    '--user=30001:30001',
    testConfig.image,
  )
  try {
    const { stream, keyId } = await fixture.backend.open({ id, state: 'created' })
    const key = deriveSandboxKey(randomBytes(32), keyId)
    const sandbox = await connectSandbox({ id, stream, key, epoch: 1 })
    const failed = judgeProof(await probeSandbox(sandbox))
      .filter(({ state }) => state === 'failed')
      .map((finding) => finding.id)
    // The filter and no-new-privileges are sbxd's own.
    expect(failed).toEqual(['capabilities', 'read-only-root', 'network'])
    await expect(requireProof(sandbox)).rejects.toMatchObject({ code: 'unsafe_host' })
    await sandbox.close()
  } finally {
    await docker('rm', '-f', '-v', id)
  }
})

test('where sandboxes do not hold, none is handed out, until they do', async () => {
  const backend = looseBackend(fixture, ({ HostConfig }) => {
    HostConfig['ReadonlyRootfs'] = false
  })
  const open = fixture.controller({ backend })
  for (const _try of [1, 2]) {
    await expect(open.acquire('somebody')).rejects.toMatchObject({
      code: 'unsafe_host',
      message: expect.stringContaining('not mounted read-only') as string,
    })
  }
  await open.stop('somebody')
  await open.close()
  const closed = fixture.controller()
  await expect(closed.acquire('somebody')).resolves.toMatchObject({ workspace: '/workspace' })
})
