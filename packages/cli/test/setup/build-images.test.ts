/** Messages of docker/build-images.sh for real failures of an engine (20.10, its docker0 removed). */
import { spawnSync } from 'node:child_process'
import { chmodSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { beforeEach, expect, test } from 'vitest'
import { nodeEnvironment } from '../../../../test/config.ts'
import { testFolder } from '../../../../test/folders.ts'

const script = fileURLToPath(new URL('../../../../docker/build-images.sh', import.meta.url))

let folder: string
beforeEach(() => void (folder = testFolder('images')))

/** Runs it with a command `docker` whose builds end with this. */
function build(answer: string): { status: number | null; stderr: string } {
  const docker = join(folder, 'docker')
  writeFileSync(
    docker,
    `#!/bin/sh
case $1 in
  version) ;;
  image) case "$*" in *Labels*) echo another ;; *) echo sha256:1 ;; esac ;;
  build) echo '${answer}' >&2; exit 1 ;;
  *) exit 1 ;;
esac
`,
  )
  chmodSync(docker, 0o755)
  const env = { ...nodeEnvironment(), PATH: `${folder}:${nodeEnvironment().PATH}` }
  return spawnSync(script, [], { encoding: 'utf8', env })
}

test('a missing bridge of the engine is reported, and how to get it', () => {
  const { status, stderr } = build(
    'failed to create endpoint a_b on network bridge: adding interface veth6 to bridge docker0 failed: could not find bridge docker0: route ip+net: no such network interface',
  )
  expect(status).toBe(1)
  expect(stderr).toMatch(/network bridge docker0 is missing.*systemctl restart docker/s)
})

test('another failure is shown as it is', () => {
  const { status, stderr } = build('no space left on device')
  expect(status).toBe(1)
  expect(stderr).toMatch(/no space left on device.*the build failed/s)
  expect(stderr).not.toContain('bridge')
})
