/** The version before this one, as another build: its sources by git, its packages, and a sandbox image with its sbxd. */
import { execFile, spawnSync } from 'node:child_process'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { randomText } from '@sandlot/shared/base/ids'
import type { Version } from '../e2e/processes.ts'
import { ROOT } from '../source-files.ts'

const run = promisify(execFile)
const MOST_BYTES = 2 ** 26

/** Version to roll out from; for a release, the release before. */
const COMMIT = 'e8fef5669c0a829997ef85b398a17cfeb3e1e25f'

/** Why it cannot be made here; undefined: it can. */
export const previousIsMissing =
  spawnSync('git', ['-C', ROOT, 'cat-file', '-e', `${COMMIT}^{commit}`], { stdio: 'ignore' }).status === 0
    ? undefined
    : `this clone has no commit ${COMMIT.slice(0, 8)} (git fetch --unshallow)`

/** Its sbxd in place of this one’s, compiled by the image’s own compiler. */
const DOCKERFILE = `
FROM sandlot/sandbox:latest AS sbxd
USER 0:0
COPY docker/sandbox /src
RUN make -C /src && install -D -m 0755 /src/sbxd /out/usr/bin/sbxd \\
 && install -D -m 0755 /src/reads/git /out/usr/lib/sandlot/reads/git \\
 && install -D -m 0644 /src/session.so /out/usr/lib/sandlot/session.so
FROM sandlot/sandbox:latest
COPY --from=sbxd /out/ /
`

export async function makePrevious(stack: AsyncDisposableStack): Promise<Version> {
  const root = mkdtempSync(join(tmpdir(), 'sandlot-previous-'))
  stack.defer(() => rmSync(root, { recursive: true, force: true }))
  await run('sh', ['-c', `git -C "$1" archive ${COMMIT} | tar -x -C "$2"`, 'sh', ROOT, root])
  // The launcher installs its packages before it does anything else.
  await run(join(root, 'sandlot'), ['help'], { maxBuffer: MOST_BYTES })
  const image = `sandlot/test-${randomText(8)}:previous`
  writeFileSync(join(root, 'Dockerfile'), DOCKERFILE)
  await run('docker', ['build', '--network', 'none', '-t', image, '-f', join(root, 'Dockerfile'), root], {
    env: { ...process.env, DOCKER_BUILDKIT: '0' },
    maxBuffer: MOST_BYTES,
  })
  stack.defer(async () => void (await run('docker', ['rmi', '--force', image])))
  return { root: `${root}/`, environment: { SANDLOT_SANDBOX_IMAGE: image } }
}
