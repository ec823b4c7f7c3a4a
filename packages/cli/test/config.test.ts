import { describe, expect, test } from 'vitest'
import { ConfigError } from '@sandlot/shared/config'
import { LOCAL_PROCESS } from '../../../test/config.ts'
import { engineOf, otherSettings, parseCliConfig } from '../src/config.ts'
import { openableUrl } from '../src/deployment/ready.ts'

describe('configuration of the launcher', () => {
  test('works with none set, in the checkout', () => {
    expect(parseCliConfig({}, '/srv/sandlot')).toMatchObject({
      data: '/srv/sandlot/.sandlot',
      host: '127.0.0.1',
      port: 8002,
      backend: 'docker',
      dockerHost: undefined,
      sandboxImage: undefined,
    })
  })

  test('a relative data directory is one of the checkout, and children get it absolute', () => {
    const config = parseCliConfig({ SANDLOT_DATA: 'state/here' }, '/srv/sandlot')
    expect(config.data).toBe('/srv/sandlot/state/here')
    expect(config.environment['SANDLOT_DATA']).toBe('/srv/sandlot/state/here')
    const keys = parseCliConfig({ SANDLOT_KEYS_DIR: 'keys/here' }, '/srv/sandlot')
    expect([config.keys, keys.keys]).toEqual(['/srv/sandlot/state/here/keys', '/srv/sandlot/keys/here'])
    expect(keys.environment['SANDLOT_KEYS_DIR']).toBe('/srv/sandlot/keys/here')
  })

  test('every problem is named at once, a misspelt setting with what was meant', () => {
    expect(() => parseCliConfig({ PORT: 'eighty', SANDLOT_SANDBOX: 'vm', SANDLOT_DATE: '/x' })).toThrow(
      ConfigError,
    )
    try {
      parseCliConfig({ PORT: 'eighty', SANDLOT_SANDBOX: 'vm', SANDLOT_DATE: '/x' })
    } catch (error) {
      const problems = error instanceof ConfigError ? error.problems.join('\n') : ''
      expect(problems).toContain('did you mean SANDLOT_DATA?')
      expect(problems).toContain('PORT: must be a whole number')
      expect(problems).toContain('SANDLOT_SANDBOX:')
    }
  })

  test('sandboxes that isolate nothing need the setting of the tests', () => {
    const refused = () => parseCliConfig({ SANDLOT_SANDBOX: 'local-process' })
    expect(refused).toThrow(ConfigError)
    expect(refused).toThrow('SANDLOT_TEST_LOCAL_PROCESS=true')
    expect(parseCliConfig(LOCAL_PROCESS).backend).toBe('local-process')
  })

  test('certificates of an engine that are asked for and are not there are a problem of who needs the engine', () => {
    const folder = { DOCKER_CERT_PATH: '/nonexistent' }
    expect(engineOf(parseCliConfig(folder))).toEqual({})
    expect(engineOf(parseCliConfig({ ...folder, DOCKER_TLS_VERIFY: '0' }))).toEqual({})
    const wrong = parseCliConfig({ ...folder, DOCKER_TLS_VERIFY: '1' })
    expect(() => engineOf(wrong)).toThrow(/DOCKER_CERT_PATH: there is no/)
    const without = parseCliConfig({ DOCKER_TLS_VERIFY: '1' })
    expect(() => engineOf(without)).toThrow(/DOCKER_TLS_VERIFY is set, but not DOCKER_CERT_PATH/)
  })

  test.each([
    ['127.0.0.1', 8002, 'http://127.0.0.1:8002'],
    ['0.0.0.0', 80, 'http://127.0.0.1:80'],
    ['::', 8002, 'http://127.0.0.1:8002'],
    ['::1', 8002, 'http://[::1]:8002'],
    ['chat.example.org', 8002, 'http://chat.example.org:8002'],
  ])('who listens on %s port %i is opened at %s', (host, port, url) =>
    expect(openableUrl(host, port)).toBe(url),
  )
})

test('a passphrase that is too short for a backup does not prevent other commands', () =>
  expect(parseCliConfig({ SANDLOT_BACKUP_PASSPHRASE: 'short' }).backups.hasPassphrase).toBe(true))

test('what only the gate, backups and the launcher read is passed to the service, without secrets', () => {
  const said = otherSettings({
    DOCKER_HOST: 'tcp://ada:pass@engine:2376',
    SANDLOT_ENGINE_MAX_CONTAINERS: '20',
    SANDLOT_BACKUP_PASSPHRASE: 'correct horse',
    SANDLOT_BACKUP_EVERY_HOURS: '24',
    SANDLOT_SANDBOX_MEMORY_MB: '1024',
    SANDLOT_ENV_FILE_NAMES: 'SANDLOT_BACKUP_EVERY_HOURS',
  })
  const of = (process: string) =>
    Object.fromEntries(
      said.find((one) => one.process === process)?.settings.map(({ name, value }) => [name, value]) ?? [],
    )
  expect(of('engine-gate')).toMatchObject({
    DOCKER_HOST: 'tcp://…@engine:2376',
    SANDLOT_ENGINE_MAX_CONTAINERS: '20',
  })
  expect(of('backup')).toMatchObject({ SANDLOT_BACKUP_EVERY_HOURS: '24', SANDLOT_BACKUP_PASSPHRASE: null })
  // The agent shows it.
  expect(JSON.stringify(said)).not.toMatch(/SANDLOT_SANDBOX_MEMORY_MB|correct horse|ada:pass/)
})
