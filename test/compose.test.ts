import { execFile, execFileSync, spawnSync } from 'node:child_process'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { describe, expect, test } from 'vitest'
import { parse } from 'yaml'
import { namesFor } from '../packages/cli/src/processes/child-env.ts'
import { nodeEnvironment } from './config.ts'
import { isPassedByCompose, NOT_BY_COMPOSE } from './configuration-docs.ts'
import { read, ROOT } from './source-files.ts'

const run = promisify(execFile)

interface Service {
  environment?: Record<string, string>
  volumes?: string[]
  ports?: string[]
  mem_limit?: string
  user?: string
  read_only?: boolean
  network_mode?: string
  cap_drop?: string[]
  cap_add?: string[]
  group_add?: string[]
  security_opt?: string[]
  depends_on?: Record<string, { condition: string }>
  logging?: { options: Record<string, string> }
  healthcheck?: { test: string[] }
  extra_hosts?: string[]
}

const FILE = 'docker/compose.yaml'
const CHILDREN = ['engine-gate', 'ai-agent', 'service', 'backup'] as const
/** Values that compose itself sets, in place of the operator’s. Undefined: the gate’s file has it. */
const OF_COMPOSE: Record<string, Record<string, string | undefined>> = {
  'ai-agent': { SANDLOT_DEPLOYMENT: undefined, NODE_USE_ENV_PROXY: '1' },
  service: { NODE_USE_ENV_PROXY: '1' },
  backup: { SANDLOT_BACKUP_DIR: '/backups' },
}
/** A folder of the host, at the same place inside; Debian's docker-compose has no `:+`. */
const KEYS = '${SANDLOT_KEYS_DIR:-/dev/null}:${SANDLOT_KEYS_DIR:-/no-keys}'

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

  test('the processes that grow with use have a limit of memory', () => {
    expect([named('ai-agent').mem_limit, named('service').mem_limit]).toEqual(['2g', '2g'])
  })

  test('only the gate and backups have the engine’s socket, and only the gate may change its user, which it does before anything else', () => {
    const withSocket = services.filter(([, { volumes }]) =>
      volumes?.some((volume) => volume.includes('docker.sock')),
    )
    expect(withSocket.map(([name]) => name)).toEqual(['engine-gate', 'backup'])
    expect(services.filter(([, { cap_add }]) => cap_add !== undefined).map(([name]) => name)).toEqual([
      'prepare-data',
      'engine-gate',
      'prepare-database',
      'backup',
    ])
    expect(named('backup')).toMatchObject({
      profiles: ['backup'],
      network_mode: 'none',
      cap_add: ['CHOWN', 'DAC_OVERRIDE', 'FOWNER'],
    })
    expect(named('engine-gate').cap_add).toEqual(['SETUID', 'SETGID'])
    expect(named('engine-gate').network_mode).toBe('none')
    expect(read('docker/as-engine-gate.sh').text).toMatch(/^exec setpriv --reuid=10002 --regid=10002 /m)
  })

  test('only ai-agent reaches the gate, whose id a restore writes: the service has neither its volume nor its group', () => {
    const withGate = services.filter(([, { volumes }]) =>
      volumes?.some((volume) => volume.startsWith('engine:')),
    )
    expect(withGate.map(([name]) => name)).toEqual(['engine-gate', 'ai-agent', 'backup'])
    expect(named('ai-agent').volumes).toContain('engine:/engine:ro')
    const inGroup = services.filter(([, { group_add }]) => group_add?.includes('10002'))
    expect(inGroup.map(([name]) => name)).toEqual(['ai-agent'])
    expect(named('ai-agent')).toMatchObject({ user: '10001:10001', group_add: ['10002'] })
    expect(named('ai-agent').environment?.['DOCKER_HOST']).toBe('unix:///engine/run/engine/docker.sock')
  })

  test('the service is a user of its own, and reads sessions.db by the agent’s group', () => {
    expect(named('service')).toMatchObject({ user: '10003:10003', group_add: ['10001'] })
    expect(named('ai-agent').environment).toMatchObject({ SANDLOT_SESSIONS_DB_MODE: '0640' })
    expect(named('service').environment).toMatchObject({
      SANDLOT_DATA: '/data/service',
      SANDLOT_SESSIONS_DB: '/data/sessions.db',
      SANDLOT_AGENT_URL: 'ws+unix:///data/run/agent.sock:/acp',
    })
  })

  test('prepare-data mounts the data alone, and has three capabilities and no network', () => {
    expect(named('prepare-data')).toMatchObject({
      user: '0:0',
      network_mode: 'none',
      cap_add: ['CHOWN', 'DAC_OVERRIDE', 'FOWNER'],
      volumes: ['data:/data', KEYS],
      restart: 'no',
    })
  })

  test('PostgreSQL has a user of its own, no network, and a password that no file of ours has', () => {
    const profiles = ['postgres']
    expect(named('postgres')).toMatchObject({ profiles, user: '10005:10005', network_mode: 'none' })
    expect(named('prepare-database')).toMatchObject({ profiles, network_mode: 'none', restart: 'no' })
    const withDatabase = services.filter(([, { volumes }]) =>
      volumes?.some((volume) => volume.startsWith('database:')),
    )
    expect(
      withDatabase.map(([name, { volumes }]) => [name, volumes?.includes('database:/database:ro')]),
    ).toEqual([
      ['ai-agent', true],
      ['service', true],
      ['prepare-database', false],
      ['postgres', false],
      ['backup', true],
    ])
    for (const name of ['ai-agent', 'service', 'backup'])
      expect(named(name).environment).toMatchObject({ DATABASE_URL_FILE: '${DATABASE_URL_FILE:-}' })
    expect(compose.services['postgres']).not.toHaveProperty('environment')
  })

  test('each variable that is not passed on has a reason that holds', () => {
    const own = new Set(CHILDREN.flatMap(namesFor))
    const stale = Object.keys(NOT_BY_COMPOSE).filter(
      (each) => !own.has(each) || CHILDREN.every((name) => named(name).environment?.[each]?.startsWith('${')),
    )
    expect(stale).toEqual([])
  })

  test('the folder of keys is where it is said to be', () => {
    const withKeys = services.filter(([, { volumes }]) => volumes?.includes(KEYS))
    expect(withKeys.map(([name]) => name)).toEqual(['prepare-data', 'ai-agent', 'service', 'backup'])
    expect(named('prepare-data')).toMatchObject({
      command: ['/app/prepare-data.sh', '/data', '${SANDLOT_KEYS_DIR:-}'],
    })
    expect(named('backup').environment).toMatchObject({ SANDLOT_KEYS_DIR: '${SANDLOT_KEYS_DIR:-}' })
  })

  test('what the agent may ask for is what the gate lets through', () => {
    const limits = (name: string): Record<string, string> =>
      Object.fromEntries(
        Object.entries(named(name).environment ?? {}).filter(([variable]) =>
          /^SANDLOT_SANDBOX_(IMAGE|MEMORY_MB|CPUS|PIDS|TMP_MB|DISK_MB|RUNTIME)$/.test(variable),
        ),
      )
    expect(Object.keys(limits('engine-gate'))).toHaveLength(7)
    expect(limits('engine-gate')).toEqual(limits('ai-agent'))
  })

  test('only ai-agent has the model’s key, and only the service has a port, on loopback, beside HTTPS where that is wanted', () => {
    const names = (service: Service): string[] => Object.keys(service.environment ?? {})
    expect(names(named('service')).filter((name) => /OPENAI|DOCKER/.test(name))).toEqual([])
    expect(names(named('ai-agent'))).toContain('OPENAI_API_KEY')
    expect(services.filter(([, { ports }]) => ports !== undefined)).toEqual([
      ['service', expect.objectContaining({ ports: ['127.0.0.1:${PORT:-8002}${PORTS_TO:-}:${PORT:-8002}'] })],
      [
        'tls',
        expect.objectContaining({
          profiles: ['tls'],
          user: '10004:10004',
          volumes: ['certificates:/data', './certificates:/certificates:ro'],
        }),
      ],
    ])
    // It has no secret settings.
    expect(names(named('tls')).filter((name) => /KEY|TOKEN|SMTP|OIDC/.test(name))).toEqual([])
  })

  test('what the operator has for the agent alone is a folder that may be empty, and no image has it', () => {
    expect(named('ai-agent').volumes).toContain('./config:/config:ro')
    expect(named('ai-agent').environment).toMatchObject({ SANDLOT_CONFIG: '${SANDLOT_CONFIG:-/config}' })
    const withFolder = services.filter(([, { volumes }]) => volumes?.some((one) => one.includes('config')))
    expect(withFolder.map(([name]) => name)).toEqual(['ai-agent'])
    expect(read('docker/config/.gitkeep').text).toBe('')
    expect(read('.dockerignore').text).toMatch(/^docker\/config$/m)
    expect(read('docker/.dockerignore').text).toMatch(/^config$/m)
  })

  test('proxies are passed by name to agent and service, the tokens of our MCP servers to the agent alone', () => {
    const byName = (name: string): [string, string] => [name, `\${${name}:-}`]
    const proxies = ['HTTP_PROXY', 'HTTPS_PROXY', 'NO_PROXY']
    expect(named('service').environment).toMatchObject(Object.fromEntries(proxies.map(byName)))
    expect(named('ai-agent').environment).toMatchObject(
      Object.fromEntries(
        [
          ...proxies,
          'DUFFEL_ACCESS_TOKEN',
          'GOOGLE_ACCESS_TOKEN',
          'GOOGLE_REFRESH_TOKEN',
          'GOOGLE_CLIENT_ID',
          'GOOGLE_CLIENT_SECRET',
        ].map(byName),
      ),
    )
    const tokens = (name: string, pattern = /DUFFEL|GOOGLE/): string[] =>
      Object.keys(named(name).environment ?? {}).filter((one) => pattern.test(one))
    expect(tokens('service')).toEqual([])
    expect(tokens('engine-gate', /PROXY|DUFFEL|GOOGLE/)).toEqual([])
    expect(named('engine-gate').volumes).toContain(
      '${DOCKER_SOCKET:-/var/run/docker.sock}:/var/run/docker.sock',
    )
  })

  test('starts in order: the image of the sandboxes, the gate and the data, the agent, the service', () => {
    expect(named('engine-gate').depends_on).toEqual({
      'sandbox-image': { condition: 'service_completed_successfully' },
    })
    expect(named('ai-agent').depends_on).toEqual({
      'engine-gate': { condition: 'service_healthy' },
      'prepare-data': { condition: 'service_completed_successfully' },
    })
    expect(named('service').depends_on).toEqual({ 'ai-agent': { condition: 'service_healthy' } })
    expect(named('ai-agent').extra_hosts).toEqual(['host.docker.internal:host-gateway'])
  })

  test.each(['engine-gate', 'ai-agent', 'service'])(
    '%s says whether it is alive, without curl, and its log does not grow for ever',
    (name) => {
      const { healthcheck, logging } = named(name)
      expect(healthcheck?.test.slice(0, 3)).toEqual(['CMD', 'node', '/app/healthcheck.mjs'])
      expect(logging?.options).toHaveProperty('max-size')
      expect(logging?.options).toHaveProperty('max-file')
    },
  )

  test('asks whether the service is alive without the proxy that the service has', async () => {
    const server = createServer((_, response) => response.end('ok'))
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
    const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/healthz`
    const check = (target: string): Promise<unknown> =>
      run(process.execPath, [join(ROOT, 'docker/healthcheck.mjs'), target], {
        env: { ...nodeEnvironment(), HTTP_PROXY: 'http://127.0.0.1:9', NODE_USE_ENV_PROXY: '1' },
      })
    await check(url)
    server.close()
    await expect(check(url)).rejects.toMatchObject({ code: 1 })
  })

  test('uses nothing that the old docker-compose does not know', () => {
    expect(compose.version).toBe('3.8')
    expect(compose).not.toHaveProperty('name')
    for (const folder of ['.', 'sandbox', 'caddy', 'postgres']) {
      expect(read(join('docker', folder, 'Dockerfile')).text).not.toMatch(
        /--mount=|--parents|--link|<<\w*EOF|^#\s*syntax=/m,
      )
    }
  })
})

test('the sandbox image is made again after a change of anything that its Dockerfile copies', () => {
  const copied = [...read('docker/sandbox/Dockerfile').text.matchAll(/^COPY (?!--)(.*) \S+$/gm)]
  const hashed = /find (.*) -type f/.exec(read('docker/build-images.sh').text)?.[1]?.split(' ') ?? []
  const paths = copied.flatMap(([, from = '']) => from.split(' ')).map((path) => path.replace(/\/$/, ''))
  expect(paths).toContain('sandbox/src')
  const missing = paths.filter((path) => !hashed.includes(path))
  expect(missing, 'add them to content_hash in docker/build-images.sh').toEqual([])
})

/** Members with these names. */
function pick(all: Record<string, string> = {}, names: readonly string[]): Record<string, string> {
  return Object.fromEntries(Object.entries(all).filter(([name]) => names.includes(name)))
}

/** The composer that this machine has: the plugin, or Debian's older program. */
const composer = [['docker', 'compose'], ['docker-compose']].find(
  ([command = '', ...args]) => spawnSync(command, [...args, 'version'], { stdio: 'ignore' }).status === 0,
)

test.skipIf(composer === undefined)(
  'compose itself gives every variable to its processes and to no other (skipped without docker compose)',
  () => {
    const [command = '', ...args] = composer ?? []
    const all = [...new Set(CHILDREN.flatMap(namesFor).filter(isPassedByCompose))]
    const values: Record<string, string> = {
      ...Object.fromEntries(all.map((name) => [name, `/srv/${name}`])),
      PORT: '8002',
    }
    const shown = execFileSync(command, [...args, '-f', FILE, 'config'], {
      cwd: ROOT,
      encoding: 'utf8',
      env: { ...nodeEnvironment(), ...values },
    })
    const read = parse(shown) as { services: Record<string, Service> }
    for (const child of CHILDREN) {
      const own = namesFor(child)
      const expected = all.filter((name) => own.includes(name)).map((name) => [name, values[name]])
      expect(pick(read.services[child]?.environment, all)).toEqual({
        ...Object.fromEntries(expected),
        ...OF_COMPOSE[child],
      })
    }
    expect(JSON.stringify(read.services['service']?.volumes)).toContain('/srv/SANDLOT_KEYS_DIR')
    expect(Object.keys(read.services).toSorted()).toEqual([
      'ai-agent',
      'backup',
      'engine-gate',
      'postgres',
      'prepare-data',
      'prepare-database',
      'sandbox-full-image',
      'sandbox-image',
      'service',
      'tls',
    ])
  },
)
