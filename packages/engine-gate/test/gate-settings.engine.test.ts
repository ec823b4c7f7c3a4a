/**
 * The gate as a process with settings that most do not have: an engine behind TLS, and the debug
 * profile.
 */
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

import { createDockerBackend } from '@sandlot/sandbox/backends/docker/backend'
import { LABEL } from '@sandlot/sandbox/names'
import { afterEach, beforeEach, expect, test } from 'vitest'

import { testConfig } from '../../sandbox/test/support/config.ts'
import {
  docker,
  dockerFixture,
  type DockerFixture,
  shell,
} from '../../sandbox/test/support/docker-fixture.ts'
import { engineBehindTls, makeCertificates } from '../../sandbox/test/support/tls-engine.ts'
import { type GateProcess, killGate, startGateProcess } from './gate-process.ts'
import { raw, requestText } from './raw-client.ts'

let fixture: DockerFixture
let data: string
let socket: string
const cleanups: (() => Promise<unknown>)[] = []
beforeEach(async () => {
  fixture = await dockerFixture()
  data = await mkdtemp(join(tmpdir(), 'sandlot-gate-'))
  socket = join(data, 'run', 'engine', 'docker.sock')
})
afterEach(async () => {
  await fixture.dispose()
  for (const cleanup of cleanups.splice(0).toReversed()) await cleanup()
  await rm(data, { recursive: true, force: true })
})

async function start(settings: Record<string, string>): Promise<GateProcess> {
  const gate = await startGateProcess(socket, {
    SANDLOT_DATA: data,
    SANDLOT_DEPLOYMENT: fixture.deployment,
    SANDLOT_SANDBOX_IMAGE: testConfig.image,
    ...(testConfig.dockerHost === undefined ? {} : { DOCKER_HOST: testConfig.dockerHost }),
    ...settings,
  })
  cleanups.push(() => killGate(gate, 'SIGTERM'))
  return gate
}

function behindGate() {
  const backend = createDockerBackend({ deployment: fixture.deployment, dockerHost: `unix://${socket}` })
  cleanups.push(async () => backend.inventory.close())
  return backend
}

/** A folder of certificates, as `DOCKER_CERT_PATH`. */
function certificates(name: string): string {
  const folder = join(data, name)
  makeCertificates(folder)
  return folder
}

test('before an engine behind TLS: with its certificates a sandbox works, with others nothing is reached', async () => {
  const folder = certificates('right')
  const engine = await engineBehindTls(folder)
  cleanups.push(async () => engine.close())
  const DOCKER_HOST = engine.address
  const right = await start({ DOCKER_HOST, DOCKER_TLS_VERIFY: '1', DOCKER_CERT_PATH: folder })
  const sandbox = await fixture.controller({ backend: behindGate() }).acquire('ann')
  const text = 'seq 200000 | sha256sum; echo through TLS'
  expect((await shell(sandbox, text)).output).toMatch(/^[0-9a-f]{64} +-\nthrough TLS\n$/)
  await sandbox.files.write('large', Buffer.alloc(3_000_000, 7))
  expect(await sandbox.files.read('large')).toHaveLength(3_000_000)
  await killGate(right, 'SIGTERM')

  const strangers = certificates('other')
  await start({ DOCKER_HOST, DOCKER_TLS_VERIFY: '1', DOCKER_CERT_PATH: strangers })
  const refused = await raw(socket, requestText('GET', '/v1.41/info'))
  expect(refused.status).toBe(502)
  expect(refused.body).toMatch(/The gate cannot reach the Docker engine at 127\.0\.0\.1:\d+/)
})

test('the debug profile goes through only where it is granted', async () => {
  const granted = { profileFor: (): 'debug' => 'debug' }
  const strict = await start({})
  await expect(
    fixture.controller({ ...granted, backend: behindGate() }).acquire('developer'),
  ).rejects.toMatchObject({
    message: expect.stringMatching(/Env\.7 is not as in the sandbox template/),
  })
  await killGate(strict, 'SIGTERM')

  await start({ SANDLOT_SANDBOX_DEBUG_USERS: 'developer' })
  const sandbox = await fixture.controller({ ...granted, backend: behindGate() }).acquire('developer')
  expect(await docker('inspect', '-f', `{{index .Config.Labels "${LABEL.profile}"}}`, sandbox.id)).toBe(
    'debug',
  )
  // Attach to a child of one's own and let it go; the numbers of ptrace(2) differ by architecture.
  const tracer = `my $n = -e "/lib/ld-linux-aarch64.so.1" ? 117 : 101; my $c = fork() || do { sleep 300; exit };
    print syscall($n, 16, $c, 0, 0) == 0 ? "open" : 0 + $!; waitpid($c, 0); kill 9, $c`
  expect((await shell(sandbox, `exec perl -e '${tracer}'`)).output).toBe('open')
})
