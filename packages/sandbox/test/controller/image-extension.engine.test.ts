/** An image that was made from the one of the sandboxes takes its place once it is there. */
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'

import { createDockerBackend } from '../../src/backends/docker/backend.ts'
import { createSandboxes } from '../../src/controller/sandboxes.ts'
import { testConfig } from '../support/config.ts'
import { deployed, docker, shell, type DockerFixture } from '../support/docker-fixture.ts'

/** Tags an image with a file that identifies it. */
async function build(fixture: DockerFixture, tag: string, from: string, word: string): Promise<void> {
  await writeFile(join(fixture.folder, 'Dockerfile'), `FROM ${from}\nUSER 0\nRUN echo ${word} >/etc/word`)
  await docker('build', '-q', '--network=none', '-t', tag, fixture.folder)
}

deployed(
  'a running sandbox keeps its image, the next start has the extension, and one of another image is passed over',
  async ({ fixture, expect }) => {
    const { deployment, deploymentKey, ledger } = fixture
    const [image, extension] = ['base', 'full'].map((kind) => `sandlot-test-${kind}:${deployment}`)
    if (image === undefined || extension === undefined) return
    await build(fixture, image, testConfig.image, 'base')
    const backend = createDockerBackend({ deployment, imageExtensions: { [image]: extension } })
    const sandboxes = createSandboxes({ backend, ledger, deploymentId: deployment, deploymentKey, image })
    const word = async (): Promise<string> =>
      (await shell(await sandboxes.acquire('ann'), 'cat /etc/word')).output.trim()
    const afterStop = async (): Promise<string> => {
      await sandboxes.stop('ann')
      return word()
    }
    try {
      expect(await word()).toBe('base')
      expect(await backend.inventory.imageName?.(image)).toBe(image)
      await build(fixture, extension, image, 'extended')
      expect(await word()).toBe('base')
      expect(await backend.inventory.imageName?.(image)).toBe(extension)
      expect(await afterStop()).toBe('extended')
      // Rebuilt: an extension of the former image is not one of this.
      await build(fixture, image, testConfig.image, 'newer')
      expect(await afterStop()).toBe('newer')
      await build(fixture, extension, image, 'extended-again')
      expect(await afterStop()).toBe('extended-again')
      await docker('rmi', '-f', extension)
      expect(await afterStop()).toBe('newer')
    } finally {
      await sandboxes.close()
      for (const { id } of await backend.list({})) await backend.remove(id)
      await backend.inventory.close()
      for (const tag of [extension, image]) await docker('rmi', '-f', tag).catch(() => undefined)
    }
  },
)
