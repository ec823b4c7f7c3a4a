/**
 * sbxd as in a Pod: it listens, and each stream is one more `sbxd relay` that the runtime starts
 * inside. `docker exec` does here what the container runtime of a node does there.
 */
import { spawn } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { Duplex } from 'node:stream'

import { afterAll, beforeAll, expect, test } from 'vitest'

import { connectSandbox, type ConnectedSandbox } from '../../src/sbxd/client.ts'
import { testConfig } from '../support/config.ts'
import { docker } from '../support/docker-fixture.ts'
import { sh } from '../contract/harness.ts'

const UID = 34_567
const key = randomBytes(32)
let container: string

beforeAll(async () => {
  container = await runListening()
})
afterAll(async () => {
  await docker('rm', '--force', container)
})

async function runListening(...more: string[]): Promise<string> {
  const options = `--user ${UID}:${UID} --read-only --cap-drop ALL --security-opt no-new-privileges --network none`
  const folders = ['/workspace', '/tmp', '/run'].flatMap((path) => ['--tmpfs', `${path}:rw,exec,mode=1777`])
  return docker('run', '--detach', ...options.split(' '), ...folders, ...more, testConfig.image, '--listen')
}

function relay(within = container): Duplex {
  const child = spawn('docker', ['exec', '-i', within, '/usr/bin/sbxd', 'relay'], {
    stdio: ['pipe', 'pipe', 'inherit'],
  })
  const stream = Duplex.from({ readable: child.stdout, writable: child.stdin })
  stream.on('close', () => child.kill('SIGKILL')).on('error', () => {})
  return stream
}

async function connect(
  change: Partial<Parameters<typeof connectSandbox>[0]> = {},
): Promise<ConnectedSandbox> {
  return connectSandbox({ id: container, stream: relay(), key, epoch: 1, heartbeatMs: 0, ...change })
}

test('a command runs on the stream of a relay, and the next relay ends it', async () => {
  const sandbox = await connect()
  // The binary cannot be read, and sbxd may raise the score of its commands all the same.
  const printed = { code: 0, out: 'hello\n500\n' }
  expect(await sh(sandbox, 'echo hello; cat /proc/self/oom_score_adj')).toMatchObject(printed)
  const again = await connect()
  expect(await sandbox.closed).toMatchObject({ code: 'sandbox_lost' })
  expect(await sh(again, 'echo again')).toMatchObject({ code: 0, out: 'again\n' })
})
