/**
 * The gate as a process before a real engine: what it lets through, what it does not, and what its
 * end does to a stream.
 */
import { randomBytes } from 'node:crypto'
import { mkdtemp, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'

import { createDockerBackend } from '@sandlot/sandbox/backends/docker/backend'
import { testConfig } from '../../sandbox/test/support/config.ts'
import {
  docker,
  dockerFixture,
  type DockerFixture,
  shell,
} from '../../sandbox/test/support/docker-fixture.ts'
import { type GateProcess, killGate, startGateProcess } from './gate-process.ts'
import { raw, requestText } from './raw-client.ts'

let fixture: DockerFixture
let data: string
let socket: string
let gate: GateProcess

const startProcess = (): Promise<GateProcess> =>
  startGateProcess(socket, {
    SANDLOT_DATA: data,
    SANDLOT_DEPLOYMENT: fixture.deployment,
    SANDLOT_SANDBOX_IMAGE: testConfig.image,
    ...(testConfig.dockerHost === undefined ? {} : { DOCKER_HOST: testConfig.dockerHost }),
  })

beforeAll(async () => {
  fixture = await dockerFixture()
  data = await mkdtemp(join(tmpdir(), 'sandlot-gate-'))
  socket = join(data, 'run', 'engine', 'docker.sock')
  gate = await startProcess()
})
afterAll(async () => {
  await fixture.dispose()
  await killGate(gate, 'SIGTERM')
  await rm(data, { recursive: true, force: true })
})

const behindGate = () =>
  createDockerBackend({ deployment: fixture.deployment, dockerHost: `unix://${socket}` })
const ask = (method: string, path: string, body = '') =>
  raw(socket, requestText(method, `/v1.41${path}`, body))

describe('before a real engine', () => {
  test('a person’s sandbox works', async () => {
    const sandbox = await fixture.controller({ backend: behindGate() }).acquire('ada')
    expect(await shell(sandbox, 'echo through the gate; id -u')).toMatchObject({ code: 0 })
    expect(await readFile(join(data, 'run', 'engine', 'deployment'), 'utf8')).toBe(`${fixture.deployment}\n`)
  })

  test('A01, A06 nothing but the template is made, and it carries our label', async () => {
    const backend = behindGate()
    const spec = fixture.spec()
    const made = await backend.create(spec)
    const { HostConfig, Config } = JSON.parse((await docker('inspect', made.id)).slice(1, -1)) as {
      HostConfig: Record<string, unknown>
      Config: Record<string, unknown> & { Labels: Record<string, string> }
    }
    expect(HostConfig).toMatchObject({
      Privileged: false,
      NetworkMode: 'none',
      ReadonlyRootfs: true,
      CapDrop: ['ALL'],
    })
    expect(Config.Labels['sandlot.deployment']).toBe(fixture.deployment)
    // The same container, as the engine itself would take it with one thing more.
    const body = JSON.stringify({ Image: 'x', HostConfig: { Binds: ['/:/host'], Privileged: true } })
    const before = await fixture.containers()
    expect((await ask('POST', `/containers/create?name=${spec.name}2`, body)).status).toBe(403)
    expect(await fixture.containers()).toEqual(before)
    await backend.remove(made.id)
    await backend.inventory.volumes.remove(spec.volume)
  })

  test('A03 a container of another deployment is not there', async () => {
    const args = [
      'create',
      '--network',
      'none',
      '--label',
      `sandlot.test=${fixture.deployment}`,
      testConfig.image,
    ]
    const stranger = await docker(...args)
    try {
      for (const id of [stranger, stranger.slice(0, 12)]) {
        for (const [method, path] of [
          ['GET', `/containers/${id}/json`],
          ['POST', `/containers/${id}/start`],
          ['POST', `/containers/${id}/rename?name=sbx-${fixture.deployment}-abcdefgh`],
          ['DELETE', `/containers/${id}?force=1`],
        ] as const)
          expect([403, 404], `${method} ${path}`).toContain((await ask(method, path)).status)
      }
      const list = JSON.parse(
        (await ask('GET', '/containers/json?all=1')).body.replace(/^[0-9a-f]+\r\n|\r\n0\r\n\r\n$/g, ''),
      ) as { Labels: Record<string, string> }[]
      for (const { Labels } of list) expect(Labels['sandlot.deployment']).toBe(fixture.deployment)
      expect(await docker('inspect', '--format', '{{.State.Status}}', stranger)).toBe('created')
    } finally {
      await docker('rm', '-f', stranger)
    }
  })

  test('A04 no exec, no files, no images, no networks', async () => {
    const [id = ''] = await fixture.containers()
    for (const [method, path] of [
      ['POST', `/containers/${id}/exec`],
      ['GET', `/containers/${id}/archive?path=/etc`],
      ['GET', `/containers/${id}/export`],
      ['POST', `/commit?container=${id}`],
      ['POST', '/build'],
      ['GET', '/images/json'],
      ['GET', '/networks'],
      ['GET', '/swarm'],
      ['GET', '/plugins'],
    ] as const)
      expect((await ask(method, path)).status, path).toBe(403)
  })
})

test('a gate that is killed while a command streams: the client comes back, and nothing is lost or doubled', async () => {
  const controller = fixture.controller({ backend: behindGate() })
  const sandbox = await controller.acquire('ada')
  const id = randomBytes(16).toString('hex')
  const lines = 200_000
  let running = await sandbox.run({ id, command: `echo ran >> count; seq 1 ${lines}`, merge: true })
  const chunks: Uint8Array[] = []
  let end = 0

  /**
   * Read on until the command's output ends, or the stream breaks; the first piece of it is the
   * signal to `then`.
   */
  const read = async (then: () => Promise<void>): Promise<void> => {
    for await (const chunk of running.output) {
      expect(chunk.offset).toBe(end)
      chunks.push(chunk.data)
      end += chunk.data.length
      running.acknowledge({ stdout: end })
      await then()
    }
  }
  running.exit.catch(() => {}) // its end is awaited on the stream that comes after
  await expect(read(() => killGate(gate, 'SIGKILL'))).rejects.toMatchObject({ code: 'sandbox_lost' })
  expect(end).toBeGreaterThan(0)

  gate = await startProcess()
  const again = await (await controller.acquire('ada')).attach(id, { stdout: end })
  if (again === undefined) throw new Error('the command is not known any more')
  running = again
  await read(async () => {})
  expect(await running.exit).toMatchObject({ code: 0 })
  const all = Buffer.concat(chunks).toString()
  expect(all).toBe(Array.from({ length: lines }, (_, n) => `${n + 1}\n`).join(''))
  expect((await shell(await controller.acquire('ada'), 'cat count')).output).toBe('ran\n')
})
