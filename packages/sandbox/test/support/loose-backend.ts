/** The Docker backend on an engine that sets less than it is asked for. */
import { once } from 'node:events'
import { type IncomingMessage, request } from 'node:http'
import { text } from 'node:stream/consumers'

import type { SandboxBackend } from '../../src/backend.ts'
import { type CreateBody, createTemplate, engineFacts } from '../../src/backends/docker/create-template.ts'
import { readSeccompProfile } from '../../src/backends/docker/seccomp.ts'
import { DEFAULT_LIMITS, sbxdArguments } from '../../src/limits.ts'
import { docker, type DockerFixture } from './docker-fixture.ts'
import { testConfig } from './config.ts'

type Body = Omit<CreateBody, 'HostConfig' | 'Cmd'> & { HostConfig: Record<string, unknown>; Cmd: string[] }

/** Another than the template's, so that a stopped container is replaced by a strict one. */
const FINGERPRINT = '1005e'

/** The fixture's backend, but each container is made of the template after `loosen` changed it. */
export function looseBackend(
  { backend, deployment }: Pick<DockerFixture, 'backend' | 'deployment'>,
  loosen: (body: Body) => void,
): SandboxBackend {
  return {
    ...backend,
    inventory: { ...backend.inventory, fingerprint: () => Promise.resolve(FINGERPRINT) },
    async create(spec, signal) {
      await backend.inventory.volumes.ensure(spec, signal)
      const info = JSON.parse(await docker('info', '--format', '{{json .}}')) as Parameters<
        typeof engineFacts
      >[0]
      const body: Body = createTemplate({
        deployment,
        spec,
        imageId: await docker('image', 'inspect', '--format', '{{.Id}}', spec.image),
        seccompProfile: await readSeccompProfile(spec.profile),
        engine: engineFacts(info),
        fingerprint: FINGERPRINT,
      })
      loosen(body)
      await post(`/containers/create?name=${spec.name}`, body)
      const made = await backend.inventory.inspect(spec.name)
      if (made === undefined) throw new Error(`${spec.name} was not created.`)
      return made
    },
  }
}

/**
 * Loosens to what Kubernetes gives: the engine's own filter, no limits of a process, and the
 * out-of-memory score of a Pod whose memory request is below its limit.
 */
export function asOnKubernetes(body: Body): void {
  const { HostConfig } = body
  body.Cmd = sbxdArguments(DEFAULT_LIMITS)
  HostConfig['SecurityOpt'] = ['no-new-privileges:true']
  HostConfig['Ulimits'] = []
  HostConfig['OomScoreAdj'] = 990
}

async function post(path: string, body: unknown): Promise<void> {
  const socketPath = testConfig.dockerHost?.replace('unix://', '') ?? '/var/run/docker.sock'
  const asked = request({ socketPath, path, method: 'POST', headers: { 'content-type': 'application/json' } })
  asked.end(JSON.stringify(body))
  const [answer] = (await once(asked, 'response')) as [IncomingMessage]
  const said = await text(answer)
  if (answer.statusCode !== 201) throw new Error(`The engine refused the container: ${said}`)
}
