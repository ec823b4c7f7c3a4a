import { ConfigError } from '@sandlot/shared/config'
import { describe, expect, test } from 'vitest'
import { readAgentConfig } from '../../src/config/config.ts'
import { fileFolder } from '../../../../test/folders.ts'

const folder = fileFolder('network')

const read = (env: Record<string, string>) => readAgentConfig([], { SANDLOT_DATA: folder, ...env })

function problems(env: Record<string, string>): string[] {
  try {
    read(env)
  } catch (error) {
    if (error instanceof ConfigError) return error.problems
    throw error
  }
  return []
}

describe('the network of sandboxes', () => {
  test('none by default', () => {
    expect(read({}).sandbox.network).toMatchObject({ egress: { allow: [] }, everybody: false })
  })

  test('egress with a list, budgets and credentials, which are kept out of the log', () => {
    const config = read({
      SANDLOT_SANDBOX_NETWORK: 'egress',
      SANDLOT_EGRESS_ALLOW: 'package-registries, *.example.org,example.org:8080,',
      SANDLOT_EGRESS_CREDENTIALS: '{"mirror.example.org": {"value": "Bearer canary"}}',
      SANDLOT_EGRESS_MB_PER_HOUR: '2',
    })
    expect(config.sandbox.network).toEqual({
      egress: {
        allow: ['package-registries', '*.example.org', 'example.org:8080'],
        credentials: { 'mirror.example.org': { value: 'Bearer canary' } },
        budgets: { bytes: 2 * 1024 * 1024 },
      },
      everybody: true,
    })
    expect(config.secrets).toEqual(['Bearer canary'])
  })

  test('an empty list allows nothing', () => {
    expect(read({ SANDLOT_SANDBOX_NETWORK: 'egress' }).sandbox.network).toMatchObject({
      egress: { allow: [] },
    })
  })

  test('what cannot be is said at the start, all at once, without the credential', () => {
    const told = problems({
      SANDLOT_SANDBOX_NETWORK: 'egress',
      SANDLOT_EGRESS_ALLOW: 'example.org,10.0.0.1',
      SANDLOT_EGRESS_CREDENTIALS: '{"mirror.example.org": "Bearer canary',
    })
    expect(told).toEqual([
      expect.stringMatching(/^SANDLOT_EGRESS_CREDENTIALS: it must be JSON/),
      expect.stringMatching(/^SANDLOT_EGRESS_ALLOW: "10\.0\.0\.1" cannot be allowed/),
    ])
    expect(told.join()).not.toContain('canary')
    expect(problems({ SANDLOT_SANDBOX_NETWORK: 'bridge' })).toEqual([
      expect.stringContaining('SANDLOT_SANDBOX_NETWORK'),
    ])
  })
})
