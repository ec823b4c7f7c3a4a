import { mkdtempSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { readConfigFile } from '../src/config-file.ts'

function fileWith(text: string): string {
  const path = join(mkdtempSync(join(tmpdir(), 'sandlot-config-')), 'sandlot.json')
  writeFileSync(path, text)
  return path
}

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
    expect(problemsOf(fileWith('\uFEFF{}'))).toEqual([])
  })

  it('that is not JSON is reported with its path', () => {
    const path = fileWith('{"a": }')
    expect(problemsOf(path)).toEqual([expect.stringContaining(`${path}: is not JSON`)])
  })

  it('refuses settings that nobody reads', () => {
    const path = fileWith('{"nonsense": 1}')
    expect(problemsOf(path)).toEqual([`${path}: nonsense is not a setting of Sandlot`])
  })

  it('is one object', () => {
    expect(problemsOf(fileWith('[]'))).toEqual([expect.stringContaining('expected object')])
  })
})
