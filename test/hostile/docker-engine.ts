/** Docker below the stage of the rows. */
import { existsSync } from 'node:fs'
import { readdir, statfs } from 'node:fs/promises'
import { join } from 'node:path'

import { docker, dockerFixture } from '../../packages/sandbox/test/support/docker-fixture.ts'
import type { StageEngine } from './stage.ts'

/** A deployment of its own on the local engine. */
export async function dockerEngine(): Promise<StageEngine> {
  const root = await docker('info', '--format', '{{.DockerRootDir}}')
  // Only when the engine runs on this machine and its folder can be read.
  const folder = existsSync(join(root, 'containers')) ? root : undefined
  const uppers = new Map<string, Promise<string>>()
  const upperFolder = (id: string): Promise<string> => {
    const known = uppers.get(id) ?? docker('inspect', '--format', '{{.GraphDriver.Data.UpperDir}}', id)
    uppers.set(id, known)
    return known
  }
  return {
    name: 'docker',
    fixture: await dockerFixture(),
    describe: (id) => docker('inspect', id),
    async log(id) {
      const driver = await docker('inspect', '-f', '{{.HostConfig.LogConfig.Type}} {{.LogPath}}', id)
      const files = folder === undefined ? [] : await readdir(join(folder, 'containers', id))
      const logs = files.filter((name) => name.includes('log'))
      return driver === 'none' && logs.length === 0 ? '' : `${driver}: ${logs.join(' ')}`
    },
    async hostFiles(id) {
      if (folder === undefined) return []
      const folders = [join(folder, 'containers', id), await upperFolder(id)]
      const found = await Promise.all(
        folders.map(async (each) =>
          (await readdir(each, { recursive: true })).map((name) => join(each, name)),
        ),
      )
      return found.flat().toSorted()
    },
    async freeBytes() {
      if (folder === undefined) return undefined
      const { bavail, bsize } = await statfs(folder)
      return bavail * bsize
    },
  }
}

/** The profile that a container was really made with. */
export async function loadedProfile(containerId: string): Promise<unknown> {
  const options: unknown = JSON.parse(
    await docker('inspect', '--format', '{{json .HostConfig.SecurityOpt}}', containerId),
  )
  const text = Array.isArray(options)
    ? options.map(String).find((option) => option.startsWith('seccomp='))
    : undefined
  return JSON.parse(text?.slice('seccomp='.length) ?? 'null')
}
