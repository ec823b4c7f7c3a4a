/**
 * `docker run --rm` with what our own containers are made with: the same image, the same hardening.
 */
import { execFile } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'

import { DEFAULT_LIMITS } from '../src/limits.ts'
import { testConfig } from '../test/support/config.ts'

const SECCOMP = fileURLToPath(new URL('../../../docker/sandbox/seccomp.json', import.meta.url))

/** The flags between `docker run` and the image. */
export const HARDENED = [
  '--network=none',
  '--read-only',
  '--cap-drop=ALL',
  '--security-opt=no-new-privileges:true',
  `--security-opt=seccomp=${SECCOMP}`,
  `--memory=${DEFAULT_LIMITS.memoryBytes}`,
  `--memory-swap=${DEFAULT_LIMITS.memoryBytes}`,
  `--cpus=${DEFAULT_LIMITS.cpus}`,
  `--pids-limit=${DEFAULT_LIMITS.pids}`,
  `--tmpfs=/tmp:rw,exec,nosuid,nodev,size=${DEFAULT_LIMITS.tmpBytes},mode=1777`,
  '--tmpfs=/run:rw,noexec,nosuid,nodev,size=4194304,mode=1777',
  '--user=30000:30000',
  '--log-driver=none',
  '--ipc=private',
]

/** A container of its own for one `sh -c true`, as most agents' sandboxes begin. */
export async function dockerRun(): Promise<void> {
  await promisify(execFile)('docker', [
    'run',
    '--rm',
    ...HARDENED,
    '--volume=/workspace',
    '--entrypoint=sh',
    testConfig.image,
    '-c',
    'true',
  ])
}
