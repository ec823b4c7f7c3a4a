import { execFileSync } from 'node:child_process'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { SETTINGS } from '@sandlot/shared/config/settings'
import { childEnvironment, type ChildName } from '../../src/processes/child-env.ts'
import { childSpec } from '../../src/processes/children.ts'
import { parseCliConfig } from '../../src/config.ts'

const environment = {
  PATH: '/bin',
  HOME: '/home/someone',
  HTTPS_PROXY: 'http://proxy:3128',
  no_proxy: 'localhost',
  OPENAI_API_KEY: 'sk-model-key',
  OPENAI_API_KEY_FILE: '/secrets/model',
  OPENAI_MODEL: 'some-model',
  DOCKER_HOST: 'unix:///var/run/docker.sock',
  PORT: '9000',
  LOG_LEVEL: 'debug',
  SANDLOT_DATA: '/data',
  SANDLOT_TEST_SEED: 'a setting of the command line',
  SANDLOT_PUBLIC_URL: 'https://chat.example.org',
  MCP_FLIGHTS_TOKEN: 'duffel-token',
  CLOUD_PASSWORD: 'somebody else’s',
  EMPTY: '',
}

describe('what each process may know', () => {
  test('the service has neither the model’s key nor the engine', () => {
    expect(childEnvironment('service', environment)).toEqual({
      NODE_ENV: 'production',
      PATH: '/bin',
      HOME: '/home/someone',
      LOG_LEVEL: 'debug',
      SANDLOT_DATA: '/data',
      HTTPS_PROXY: 'http://proxy:3128',
      no_proxy: 'localhost',
      PORT: '9000',
      SANDLOT_PUBLIC_URL: 'https://chat.example.org',
    })
  })

  test('ai-agent has the model’s key, what MCP servers refer to, and of the service only its address', () => {
    expect(childEnvironment('ai-agent', environment)).toEqual({
      NODE_ENV: 'production',
      PATH: '/bin',
      HOME: '/home/someone',
      LOG_LEVEL: 'debug',
      SANDLOT_DATA: '/data',
      HTTPS_PROXY: 'http://proxy:3128',
      no_proxy: 'localhost',
      OPENAI_API_KEY: 'sk-model-key',
      OPENAI_API_KEY_FILE: '/secrets/model',
      OPENAI_MODEL: 'some-model',
      DOCKER_HOST: 'unix:///var/run/docker.sock',
      PORT: '9000',
      SANDLOT_PUBLIC_URL: 'https://chat.example.org',
      MCP_FLIGHTS_TOKEN: 'duffel-token',
    })
  })

  test('the gate has the engine, and no key', () => {
    expect(childEnvironment('engine-gate', environment)).toEqual({
      NODE_ENV: 'production',
      PATH: '/bin',
      HOME: '/home/someone',
      SANDLOT_DATA: '/data',
      DOCKER_HOST: 'unix:///var/run/docker.sock',
    })
  })

  test('the agent of a launcher knows the gate, and only the gate knows the engine', async () => {
    const certificates = await mkdtemp(join(tmpdir(), 'sandlot-certificates-'))
    for (const name of ['ca.pem', 'cert.pem', 'key.pem']) await writeFile(join(certificates, name), 'x')
    const config = parseCliConfig({
      SANDLOT_DATA: '/somewhere',
      DOCKER_HOST: 'tcp://engine.example:2376',
      DOCKER_CERT_PATH: certificates,
      DOCKER_TLS_VERIFY: '1',
    })
    const known = (name: ChildName): string[] =>
      Object.entries(childSpec(name, config).environment)
        .filter(([variable]) => variable.startsWith('DOCKER_'))
        .map((pair) => pair.join('='))
    expect(known('service')).toEqual([])
    expect(known('ai-agent')).toEqual(['DOCKER_HOST=unix:///somewhere/run/engine/docker.sock'])
    expect(known('engine-gate')).toEqual([
      'DOCKER_HOST=tcp://engine.example:2376',
      `DOCKER_CERT_PATH=${certificates}`,
      'DOCKER_TLS_VERIFY=1',
    ])
    await rm(certificates, { recursive: true })
  })

  test.each(['ai-agent', 'service'] as const)(
    '%s has a limit of its heap, and flags of its operator win',
    (name) => {
      const limitOf = (given: Record<string, string>): number => {
        const { environment: env, command } = childSpec(
          name,
          parseCliConfig({ SANDLOT_DATA: '/somewhere', ...given }),
        )
        const script = 'require("node:v8").getHeapStatistics().heap_size_limit / 2 ** 20'
        return Number(execFileSync(command, ['-p', script], { env, encoding: 'utf8' }))
      }
      expect(limitOf({})).toBeLessThanOrEqual(1024 + 3 * 32)
      expect(limitOf({ NODE_OPTIONS: '--max-old-space-size=1500' })).toBeGreaterThanOrEqual(1500)
    },
  )

  test.each(['ai-agent', 'service', 'engine-gate', 'backup'] as const)(
    'with every setting set, %s gets its own, and no other',
    (child) => {
      const values = Object.fromEntries(Object.keys(SETTINGS).map((name) => [name, `/srv/${name}`]))
      const config = { ...parseCliConfig({}), environment: values }
      const given = childSpec(child, config).environment
      // The agent has the gate in place of the engine, and the gate’s file with the deployment.
      const { DOCKER_HOST } = given
      const expected: Record<string, string | undefined> =
        child === 'ai-agent' ? { ...values, DOCKER_HOST, SANDLOT_DEPLOYMENT: undefined } : values
      for (const [name, { processes }] of Object.entries(SETTINGS))
        expect([name, given[name]]).toEqual([name, processes.includes(child) ? expected[name] : undefined])
    },
  )

  test('every setting is read by a process', () =>
    expect(Object.keys(SETTINGS).filter((name) => SETTINGS[name]?.processes.length === 0)).toEqual([]))
})
