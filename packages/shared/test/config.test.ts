import { describe, expect, test } from 'vitest'
import { ConfigError, readConfig, settingSchema } from '../src/config.ts'
import { nearest, settingNameProblems } from '../src/config/names.ts'
import { PROCESSES } from '../src/config/setting.ts'
import { SETTINGS } from '../src/config/settings.ts'

const schema = settingSchema('ai-agent').pick({
  SANDLOT_MAX_CONCURRENT_TOOLS: true,
  SANDLOT_TOOLS_ENABLED: true,
  OPENAI_API_KEY: true,
})
const noFiles = (path: string): string => {
  throw new Error(`no such file: ${path}`)
}

describe('configuration', () => {
  test('everything works with none set, and an empty value counts as not set', () => {
    expect(readConfig(schema, { OPENAI_API_KEY: '' }, noFiles)).toEqual({
      SANDLOT_MAX_CONCURRENT_TOOLS: 10,
      SANDLOT_TOOLS_ENABLED: true,
    })
  })

  test('reports every problem at once, by name', () => {
    const read = (): unknown =>
      readConfig(
        schema,
        { SANDLOT_MAX_CONCURRENT_TOOLS: '11', SANDLOT_TOOLS_ENABLED: 'perhaps', SANDLOT_DEFAULT_MOD: 'yolo' },
        noFiles,
      )
    expect(read).toThrow(ConfigError)
    expect(read).toThrow(/SANDLOT_MAX_CONCURRENT_TOOLS: must be at most 10/)
    expect(read).toThrow(/SANDLOT_TOOLS_ENABLED/)
    expect(read).toThrow(
      /SANDLOT_DEFAULT_MOD is not a setting of Sandlot; did you mean SANDLOT_DEFAULT_MODE\?/,
    )
  })

  test('a secret may come from a file, but not from both places', () => {
    const files = (path: string): string => (path === '/run/secrets/key' ? 'sk-1\n' : noFiles(path))
    expect(readConfig(schema, { OPENAI_API_KEY_FILE: '/run/secrets/key' }, files).OPENAI_API_KEY).toBe('sk-1')
    expect(() => readConfig(schema, { OPENAI_API_KEY_FILE: '/nowhere' }, files)).toThrow(
      /OPENAI_API_KEY_FILE/,
    )
    expect(() =>
      readConfig(schema, { OPENAI_API_KEY: 'a', OPENAI_API_KEY_FILE: '/run/secrets/key' }, files),
    ).toThrow(/both set/)
  })

  test('knows its own names and their _FILE forms', () => {
    const all = Object.keys(SETTINGS).flatMap((name) => [name, `${name}_FILE`])
    expect(settingNameProblems(Object.fromEntries(all.map((name) => [name, 'x'])))).toEqual([])
    expect(nearest('completely_different', ['run_shell_command'])).toBeUndefined()
  })

  test('refuses in .env what Sandlot sets itself', () => {
    const read = (names: string) => () => readConfig(schema, { SANDLOT_ENV_FILE_NAMES: names }, noFiles)
    expect(read('PORT,SANDLOT_OTHER_SETTINGS')).toThrow(/SANDLOT_OTHER_SETTINGS: remove it from \.env/)
    expect(read('PORT,SANDLOT_MAX_TURNS_FILE')).not.toThrow()
  })

  test.each(PROCESSES)('%s starts with each default, written out as well', (process) => {
    const defaults = Object.entries(SETTINGS).flatMap(([name, { default: preset }]) =>
      preset === undefined ? [] : [[name, preset]],
    )
    const all = settingSchema(process)
    expect(readConfig(all, Object.fromEntries(defaults), noFiles)).toEqual(readConfig(all, {}, noFiles))
  })

  test.each([
    ['SANDLOT_SANDBOX_POOL', '101', /SANDLOT_SANDBOX_POOL: must be .*auto \| 0–100/],
    ['SANDLOT_SANDBOX_CPUS', 'two', /must be a number like 2 or 0\.5/],
    ['SANDLOT_MAX_COST', '0,5', /must be a number like 5 or 0\.50/],
    ['SANDLOT_PUBLIC_URL', 'chat.example.org', /must be an address like https:/],
    ['SANDLOT_PUBLIC_URL', 'https://example.org/sandlot', /at the root of its host/],
    ['SANDLOT_REPLICA', 'A', /must be lower-case/],
    ['SANDLOT_SANDBOX_NETWORK', 'all', /SANDLOT_SANDBOX_NETWORK: .*none \| egress; what commands may reach/],
  ])('%s=%s is refused with what it may be', (name, value, problem) =>
    expect(() => readConfig(settingSchema('ai-agent'), { [name]: value }, noFiles)).toThrow(problem),
  )
})
