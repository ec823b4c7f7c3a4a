import { mkdtempSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { ConfigError } from '@sandlot/shared/config'
import { describe, expect, test } from 'vitest'
import { LOCAL_PROCESS } from '../../../../test/config.ts'
import { readAgentConfig } from '../../src/config/config.ts'
import { deploymentKeys } from '@sandlot/shared/node/deployment-keys'
import { makeRedactor, makeLog } from '../../src/log.ts'
import { builtinTools } from '../../src/tools/builtin/index.ts'
import { fileFolder } from '../../../../test/folders.ts'

const folder = fileFolder('config')

const names = builtinTools().map((tool) => tool.name)
const read = (env: Record<string, string>) => readAgentConfig(names, { SANDLOT_DATA: folder, ...env })

function problems(env: Record<string, string>): string[] {
  try {
    read(env)
  } catch (error) {
    if (error instanceof ConfigError) return error.problems
    throw error
  }
  return []
}

describe('configuration', () => {
  test('everything works with none set', () => {
    const config = read({})
    expect(config).toMatchObject({
      models: undefined,
      defaultMode: 'auto-edit',
      toolsEnabled: true,
      limits: { everybody: { maxTurns: 100, budgets: {} } },
      approvalTtlMs: 86_400_000,
      sandbox: { backend: 'docker', limits: { memoryBytes: 2048 * 1024 * 1024, cpus: 2 } },
    })
    expect(config.socket).toBe(join(folder, 'run', 'agent.sock'))
  })

  test('a model needs its name; the address has a default and the key may be missing', () => {
    expect(problems({ OPENAI_API_KEY: 'sk-x' })).toHaveLength(1)
    expect(problems({ OPENAI_BASE_URL: 'http://127.0.0.1:1/v1' })).toHaveLength(1)
    expect(read({ OPENAI_MODEL: 'm' }).models).toEqual({
      main: { baseUrl: 'https://api.openai.com/v1', apiKey: '', name: 'm' },
      choices: [],
      fallbacks: [],
      silence: { idleMs: 60_000, progressMs: 120_000 },
    })
  })

  test('who may trace: nobody, single people, or all', () => {
    expect(read({}).sandbox).toMatchObject({ profile: 'default', debugUsers: new Set() })
    expect(read({ SANDLOT_SANDBOX_DEBUG_USERS: 'u1, u2,' }).sandbox.debugUsers).toEqual(new Set(['u1', 'u2']))
    expect(read({ SANDLOT_SANDBOX_DEBUG_USERS: '*' }).sandbox.profile).toBe('debug')
    expect(problems({ SANDLOT_SANDBOX_PROFILE: 'debug' })).toEqual([
      expect.stringContaining('set SANDLOT_SANDBOX_DEBUG_USERS=* instead'),
    ])
  })

  test('sandboxes that isolate nothing need the setting of the tests', () => {
    expect(problems({ SANDLOT_SANDBOX: 'local-process' })).toEqual([
      expect.stringContaining('SANDLOT_TEST_LOCAL_PROCESS=true'),
    ])
    expect(read(LOCAL_PROCESS).sandbox.backend).toBe('local-process')
  })

  test('sandboxes on a cluster: the image by digest, and no limit of one host', () => {
    const cluster = { SANDLOT_SANDBOX: 'kubernetes' }
    const digest = `registry.example.org/sandbox@sha256:${'0'.repeat(64)}`
    expect(problems(cluster)).toEqual([expect.stringMatching(/SANDLOT_SANDBOX_IMAGE: not set; .*by digest/)])
    expect(problems({ ...cluster, SANDLOT_SANDBOX_IMAGE: 'registry.example.org/sandbox:1' })).toHaveLength(1)
    expect(problems({ ...cluster, SANDLOT_SANDBOX_IMAGE: digest, SANDLOT_HOST_DISK_FREE_MB: '100' })).toEqual(
      [expect.stringContaining('SANDLOT_HOST_DISK_FREE_MB')],
    )
    const { sandbox } = read({
      ...cluster,
      SANDLOT_SANDBOX_IMAGE: digest,
      SANDLOT_KUBERNETES_STREAM_MB: '16',
      SANDLOT_HOST_SANDBOXES: '3',
      KUBECONFIG: '/somewhere/config',
    })
    expect(sandbox.host).toEqual({ sandboxes: 3 })
    expect(sandbox.images).toEqual({ image: digest })
    expect(sandbox).toMatchObject({
      backend: 'kubernetes',
      kubernetes: {
        access: { namespace: 'sandlot-sandboxes', environment: { KUBECONFIG: '/somewhere/config' } },
        streamRate: 16_000_000,
      },
    })
    expect(read({}).sandbox.host.diskFloor?.bytes).toBe(2048 * 1024 * 1024)
    const never = read({ SANDLOT_HOST_DISK_FREE_MB: '0' })
    expect(never.sandbox.host.diskFloor).toEqual({ bytes: 0, files: 0 })
  })

  test('a key from a file', () => {
    const file = join(folder, 'key')
    writeFileSync(file, 'sk-from-a-file\n')
    const config = read({ OPENAI_MODEL: 'm', OPENAI_API_KEY_FILE: file })
    expect(config.models?.main.apiKey).toBe('sk-from-a-file')
    expect(config.secrets).toEqual(['sk-from-a-file'])
  })

  test('every problem at once', () => {
    const env = {
      SANDLOT_DEFAULT_MODE: 'wild',
      SANDLOT_MAX_CONCURRENT_TOOLS: '11',
      SANDLOT_SANDBOX_CPUS: 'two',
      SANDLOT_TOOL_TIMOUT_MS: '1',
    }
    expect(problems(env)).toHaveLength(4)
    expect(problems({ SANDLOT_DATA: `/tmp/${'x'.repeat(120)}` })).toEqual([
      expect.stringContaining('too long'),
    ])
    expect(problems({ DOCKER_TLS_VERIFY: '1', DOCKER_CERT_PATH: '/nonexistent' })).toHaveLength(1)
    expect(problems({ DOCKER_TLS_VERIFY: '1' })).toEqual([
      'DOCKER_TLS_VERIFY is set, but not DOCKER_CERT_PATH',
    ])
  })
})

describe('keys', () => {
  test('are made once; a damaged file is refused, never replaced', () => {
    const data = mkdtempSync(join(folder, 'data-'))
    const keys = deploymentKeys(data)
    expect(keys.id).toMatch(/^[a-z0-9]{8}$/)
    expect(keys.key).toHaveLength(32)
    expect(deploymentKeys(data)).toEqual(keys)
    expect(deploymentKeys(data, keys.id)).toEqual(keys)
    expect(() => deploymentKeys(data, 'another')).toThrow(/SANDLOT_DEPLOYMENT is another/)
    expect(deploymentKeys(mkdtempSync(join(folder, 'data-')), 'given').id).toBe('given')
    const path = join(data, 'deployment.json')
    writeFileSync(path, '{"id"')
    expect(() => deploymentKeys(data)).toThrow(/damaged/)
    expect(readFileSync(path, 'utf8')).toBe('{"id"')
  })

  test('may be in another folder, and are not made anew there while the data folder has some', () => {
    const [data, keys] = [mkdtempSync(join(folder, 'data-')), join(folder, 'shared-keys')]
    const both = { SANDLOT_DATA: data, SANDLOT_KEYS_DIR: keys }
    expect([read({ SANDLOT_DATA: data }).keysFolder, read(both).keysFolder]).toEqual([
      join(data, 'keys'),
      keys,
    ])
    deploymentKeys(join(data, 'keys'))
    expect(problems(both)).toEqual([expect.stringContaining('move the keys there')])
    deploymentKeys(keys)
    expect(problems(both)).toEqual([])
  })
})

describe('the log', () => {
  test('hides configured secrets and what looks like a key, wherever it stands', () => {
    const lines: string[] = []
    const log = makeLog('info', makeRedactor(['my-own-secret-value']), (line) => void lines.push(line))
    log.info({ deep: { er: { value: 'x my-own-secret-value y' } } }, 'with sk-abcdefghijklmnop in it')
    expect(lines.join('')).not.toMatch(/my-own-secret-value|sk-abcdefghijklmnop/)
  })
})
