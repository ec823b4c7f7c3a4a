import { describe, expect, it } from 'vitest'
import { readConfigFile } from '../../src/config/file.ts'
import { configFile } from '../support/config-fixture.ts'

function problemsOf(path: string, required = false): string[] {
  const problems: string[] = []
  readConfigFile(path, required, problems)
  return problems
}

describe('the configuration file', () => {
  it('may be absent where nobody named it, and must be there where somebody did', () => {
    expect(problemsOf('/nowhere/sandlot.json')).toEqual([])
    expect(problemsOf('/nowhere/sandlot.json', true)).toEqual([
      expect.stringMatching(/^SANDLOT_CONFIG: cannot read \/nowhere\/sandlot\.json .*ENOENT/),
    ])
  })

  it('may be empty of settings, and may begin with a byte order mark', () => {
    expect(problemsOf(configFile('\uFEFF{}'))).toEqual([])
  })

  it('that is not JSON is reported with its path', () => {
    const path = configFile('{"a": }')
    expect(problemsOf(path)).toEqual([expect.stringContaining(`${path}: is not JSON`)])
  })

  it('refuses settings that nobody reads', () => {
    const path = configFile('{"nonsense": 1}')
    expect(problemsOf(path)).toEqual([`${path}: nonsense is not a setting of Sandlot`])
  })

  it('is one object', () => {
    expect(problemsOf(configFile('[]'))).toEqual([expect.stringContaining('expected object')])
  })
})
