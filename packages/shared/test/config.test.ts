import { describe, expect, test } from 'vitest'
import { z } from 'zod'
import { ConfigError, flag, readConfig, wholeNumber } from '../src/config.ts'
import { CONFIG_NAMES, nearest, unknownConfigNames } from '../src/config/names.ts'

const schema = z.object({
  SANDLOT_MAX_CONCURRENT_TOOLS: wholeNumber(1, 10).default(10),
  SANDLOT_TOOLS_ENABLED: flag.default(true),
  OPENAI_API_KEY: z.string().optional(),
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
    expect(
      unknownConfigNames(Object.fromEntries(Object.keys(CONFIG_NAMES).map((name) => [name, 'x']))),
    ).toEqual([])
    expect(unknownConfigNames({ SANDLOT_METRICS_TOKEN_FILE: 'x', HOME: '/' })).toEqual([])
    expect(nearest('completely_different', ['run_shell_command'])).toBeUndefined()
  })
})
