import { execFileSync, spawnSync } from 'node:child_process'
import { describe, expect, test } from 'vitest'
import { parse } from 'yaml'
import { read, ROOT } from './source-files.ts'

interface Service {
  environment?: Record<string, string>
  volumes?: string[]
  ports?: string[]
  user?: string
  read_only?: boolean
  network_mode?: string
  cap_drop?: string[]
  cap_add?: string[]
  security_opt?: string[]
  depends_on?: Record<string, { condition: string }>
  logging?: { options: Record<string, string> }
  healthcheck?: { test: string[] }
  extra_hosts?: string[]
}

const FILE = 'docker/compose.yaml'
const compose = parse(read(FILE).text, { merge: true }) as {
  name?: string
  version: string
  services: Record<string, Service>
}
const services = Object.entries(compose.services)
const named = (name: string): Service => {
  const found = compose.services[name]
  if (found === undefined) throw new Error(`there is no service ${name}`)
  return found
}

describe('the composed deployment', () => {
  test.each(services)('%s is hardened', (_, service) => {
    expect(service).toMatchObject({
      read_only: true,
      cap_drop: ['ALL'],
      security_opt: ['no-new-privileges:true'],
    })
    expect(service).not.toHaveProperty('privileged')
  })

  test('only ai-agent has the socket, and only it may change its user, which it does before anything else', () => {
    const withSocket = services.filter(([, { volumes }]) =>
      volumes?.some((volume) => volume.includes('docker.sock')),
    )
    expect(withSocket.map(([name]) => name)).toEqual(['ai-agent'])
    expect(services.filter(([, { cap_add }]) => cap_add !== undefined).map(([name]) => name)).toEqual([
      'ai-agent',
    ])
    expect(named('ai-agent').cap_add).toEqual(['SETUID', 'SETGID'])
    expect(read('docker/as-sandlot.sh').text).toMatch(/^exec setpriv --reuid=10001 --regid=10001 /m)
    expect(named('service').user).toBe('10001:10001')
  })

  test('only ai-agent has the model’s key, and only the service has a port, on loopback', () => {
    const names = (service: Service): string[] => Object.keys(service.environment ?? {})
    expect(names(named('service')).filter((name) => /OPENAI|DOCKER/.test(name))).toEqual([])
    expect(names(named('ai-agent'))).toContain('OPENAI_API_KEY')
    expect(services.flatMap(([, { ports }]) => ports ?? [])).toEqual([
      '127.0.0.1:${PORT:-8002}:${PORT:-8002}',
    ])
  })

  test('starts in order: the image of the sandboxes, the agent, the service', () => {
    expect(named('ai-agent').depends_on).toEqual({
      'sandbox-image': { condition: 'service_completed_successfully' },
    })
    expect(named('service').depends_on).toEqual({ 'ai-agent': { condition: 'service_healthy' } })
    expect(named('ai-agent').extra_hosts).toEqual(['host.docker.internal:host-gateway'])
  })

  test.each(['ai-agent', 'service'])(
    '%s says whether it is alive, without curl, and its log does not grow for ever',
    (name) => {
      const { healthcheck, logging } = named(name)
      expect(healthcheck?.test.slice(0, 3)).toEqual(['CMD', 'node', '/app/healthcheck.mjs'])
      expect(logging?.options).toHaveProperty('max-size')
      expect(logging?.options).toHaveProperty('max-file')
    },
  )

  test('uses nothing that the old docker-compose does not know', () => {
    expect(compose.version).toBe('3.8')
    expect(compose).not.toHaveProperty('name')
    for (const dockerfile of ['docker/Dockerfile', 'docker/sandbox/Dockerfile']) {
      expect(read(dockerfile).text).not.toMatch(/--mount=|--parents|--link|<<\w*EOF|^#\s*syntax=/m)
    }
  })
})

/** The composer that this machine has: the plugin, or Debian's older program. */
const composer = [['docker', 'compose'], ['docker-compose']].find(
  ([command = '', ...args]) => spawnSync(command, [...args, 'version'], { stdio: 'ignore' }).status === 0,
)

test.skipIf(composer === undefined)('compose itself reads the file (skipped without docker compose)', () => {
  const [command = '', ...args] = composer ?? []
  const shown = execFileSync(command, [...args, '-f', FILE, 'config'], { cwd: ROOT, encoding: 'utf8' })
  const read = parse(shown) as { services: Record<string, Service> }
  expect(Object.keys(read.services).toSorted()).toEqual(['ai-agent', 'sandbox-image', 'service'])
})
