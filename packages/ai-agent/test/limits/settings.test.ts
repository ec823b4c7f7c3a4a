/** Rows "budgets", "fallback model", "cost": what an operator writes. */
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { ConfigError } from '@sandlot/shared/config'
import { describe, expect, test } from 'vitest'
import { readAgentConfig } from '../../src/config/config.ts'
import { promptLimits } from '../../src/limits/settings.ts'
import { limitsFor } from '../support/personal-settings.ts'
import { fileFolder } from '../../../../test/folders.ts'

const folder = fileFolder('limits')
const key = join(folder, 'key')
writeFileSync(key, 'sk-second\n')

function read(env: Record<string, string>, file: unknown = {}) {
  const path = join(folder, 'sandlot.json')
  writeFileSync(path, JSON.stringify(file))
  return readAgentConfig([], { SANDLOT_DATA: folder, SANDLOT_CONFIG: path, ...env })
}
function problems(env: Record<string, string>, file: unknown): string {
  try {
    read(env, file)
  } catch (error) {
    if (error instanceof ConfigError) return error.problems.join('\n')
    throw error
  }
  return ''
}

describe('budgets', () => {
  test('for everybody by the environment, for one person by the file, 0 is no limit', () => {
    const { limits } = read(
      { SANDLOT_MAX_COST: '5', SANDLOT_MAX_TOKENS_PER_DAY: '1000', SANDLOT_MAX_PROMPT_SECONDS: '90' },
      { limits: { users: { u_ada: { turns: 5, cost: 0, promptSeconds: 10 }, u_bob: { tokensPerDay: 0 } } } },
    )
    const day = { tokens: 1_000 }
    expect(limits.everybody).toEqual({ maxTurns: 100, budgets: { cost: 5, day, promptMs: 90_000 } })
    expect(limitsFor(limits, 'u_ada', undefined)).toEqual({
      maxTurns: 5,
      budgets: { day, promptMs: 10_000 },
    })
    expect(limitsFor(limits, 'u_bob', undefined).budgets).toEqual({ cost: 5, promptMs: 90_000 })
  })

  test('of a day and a month, each by its name, for everybody and for one person', () => {
    const env = {
      SANDLOT_MAX_TOKENS_PER_DAY: '3',
      SANDLOT_MAX_COST_PER_DAY: '4.5',
      SANDLOT_MAX_TOKENS_PER_MONTH: '5',
      SANDLOT_MAX_COST_PER_MONTH: '6.5',
    }
    const u_ada = { tokensPerDay: 8, costPerDay: 9.5, tokensPerMonth: 0 }
    const { limits } = read(env, { limits: { users: { u_ada } } })
    const month = { tokens: 5, cost: 6.5 }
    expect(limits.everybody.budgets).toEqual({ day: { tokens: 3, cost: 4.5 }, month })
    expect(limitsFor(limits, 'u_ada', undefined).budgets).toEqual({
      day: { tokens: 8, cost: 9.5 },
      month: { cost: 6.5 },
    })
  })

  test('of everybody together, each by its name, a day and a month', () => {
    const { limits } = read({
      SANDLOT_TOTAL_TOKENS_PER_DAY: '3',
      SANDLOT_TOTAL_COST_PER_DAY: '4',
      SANDLOT_TOTAL_TOKENS_PER_MONTH: '5',
      SANDLOT_TOTAL_COST_PER_MONTH: '6.5',
    })
    const of = { kind: 'deployment' } as const
    expect(promptLimits({}, [{ of, limits: limits.total }]).budgets.together).toEqual([
      { of, day: { tokens: 3, cost: 4 }, month: { tokens: 5, cost: 6.5 } },
    ])
  })

  test('a limit of the previous version stops the start, and one that is stored is still enforced', () => {
    const said = problems({ SANDLOT_MAX_CALLS: '5', SANDLOT_TOTAL_SECONDS_PER_MONTH: '9' }, {})
    expect(said).toContain('SANDLOT_MAX_CALLS is no longer a setting: it limited the calls of a prompt')
    expect(said).toContain('it limited the running time of everybody together in a month; limit tokens or')
    expect(problems({ SANDLOT_MAX_CALLS: '' }, {})).toBe('')
    const stored = { calls: 2, callsPerDay: 7, secondsPerMonth: 10 }
    expect(promptLimits(stored).budgets).toEqual({ calls: 2, day: { calls: 7 }, month: { ms: 10_000 } })
  })

  test('a limit under the address holds beside others under the id', () => {
    const users = {
      'ada@example.org': { cost: 2, calls: 7 },
      u_ada: { turns: 9, calls: 8 },
    }
    const { limits } = read({ SANDLOT_MAX_PROMPT_SECONDS: '500' }, { limits: { users } })
    expect(limitsFor(limits, 'u_ada', 'ada@example.org')).toEqual({
      maxTurns: 9,
      budgets: { cost: 2, calls: 8, promptMs: 500_000 },
    })
    expect(limitsFor(limits, 'u_bob', 'bob@example.org')).toEqual(limits.everybody)
  })

  test.each([
    ['of a prompt', { SANDLOT_MAX_COST: '0.50' }, {}],
    ['of a day', { SANDLOT_MAX_COST_PER_DAY: '0.50' }, {}],
    ['of one person', {}, { cost: 0.5 }],
    ['of one person and day', {}, { costPerDay: 0.5 }],
  ])('a limit in dollars %s wants a price for every model', (_, limit, ada) => {
    const file = { limits: { users: { u_ada: ada } } }
    expect(problems({ OPENAI_MODEL: 'home-made', ...limit }, file)).toContain('no price of home-made')
  })

  test('a limit in dollars holds with the price that the file has', () => {
    const env = { OPENAI_MODEL: 'home-made', SANDLOT_MAX_COST: '0.50' }
    const { limits, models } = read(env, { prices: { 'home-made': { input: 1, output: 2, cacheWrite: 3 } } })
    expect(limits.everybody.budgets).toEqual({ cost: 0.5 })
    expect(models?.main.price).toEqual({ input: 1, output: 2, cacheWrite: 3 })
  })

  test.each([
    ['gpt-4o', 'https://api.openai.com/v1'],
    ['claude-opus-4-5', 'https://api.anthropic.com/v1'],
    ['gemini-2.5-flash', 'https://generativelanguage.googleapis.com/v1beta/openai'],
    ['grok-4', 'https://api.x.ai/v1'],
  ])(
    'a limit in dollars holds for %s without a typed price, but not at an address of our own',
    (name, url) => {
      const env = { OPENAI_MODEL: name, OPENAI_BASE_URL: url, SANDLOT_MAX_COST: '0.50' }
      expect(problems(env, {})).toBe('')
      const ours = { ...env, OPENAI_BASE_URL: 'http://127.0.0.1:8000/v1' }
      expect(problems(ours, {})).toContain(`no price of ${name}`)
      const choices = [{ name: 'other', baseUrl: 'https://llm.example.org/v1' }]
      expect(problems(env, { models: { choices } })).toContain('no price of other')
    },
  )
})

describe('models', () => {
  test('fallbacks have an address, a key and a profile of their own; the main key goes nowhere else', () => {
    const { models, secrets } = read(
      { OPENAI_MODEL: 'gpt-4o', OPENAI_API_KEY: 'sk-first', SANDLOT_MODEL_IDLE_SECONDS: '7' },
      {
        models: {
          main: { contextWindow: 64_000, wire: 'chat', profile: { cumulative: true } },
          fallbacks: [
            { name: 'gpt-4o-mini' },
            { name: 'qwen3', baseUrl: 'http://127.0.0.1:8000/v1', images: false, streaming: false },
            { name: 'kimi', baseUrl: 'https://kimi.example/v1', apiKeyFile: key },
          ],
        },
      },
    )
    expect(models).toMatchObject({
      main: { name: 'gpt-4o', contextWindow: 64_000, wire: 'chat', profile: { cumulative: true } },
      fallbacks: [
        { name: 'gpt-4o-mini', apiKey: 'sk-first', price: { input: 0.15 } },
        { name: 'qwen3', apiKey: '', profile: { images: false }, streaming: false },
        { name: 'kimi', apiKey: 'sk-second' },
      ],
      silence: { idleMs: 7_000 },
    })
    expect(models?.fallbacks[1]?.price).toBeUndefined()
    expect(secrets).toContain('sk-second')
  })

  test('choices are models like others; a fallback that is a name is one of them, the same object', () => {
    const { models, secrets } = read(
      { OPENAI_MODEL: 'main', OPENAI_API_KEY: 'sk-first' },
      {
        models: {
          choices: [
            { name: 'big', apiKeyFile: key, profile: { thoughtLevels: ['low', 'high'] } },
            { name: 'main', label: 'main elsewhere', baseUrl: 'http://127.0.0.1:8000/v1' },
          ],
          fallbacks: ['main elsewhere', 'main', { name: 'last' }],
        },
      },
    )
    expect(models?.choices).toMatchObject([
      { name: 'big', apiKey: 'sk-second', profile: { thoughtLevels: ['low', 'high'] } },
      { name: 'main', label: 'main elsewhere', apiKey: '' },
    ])
    expect(models?.fallbacks[0]).toBe(models?.choices[1])
    expect(models?.fallbacks[1]).toBe(models?.main)
    expect(models?.fallbacks[2]).toMatchObject({ name: 'last', apiKey: 'sk-first' })
    expect(secrets).toContain('sk-second')
    const env = { OPENAI_MODEL: 'm' }
    expect(problems(env, { models: { fallbacks: ['n'] } })).toContain(
      'models.fallbacks.0: there is no choice n',
    )
    expect(problems(env, { models: { choices: [{ name: 'm' }] } })).toContain('two models are called m')
    expect(problems(env, { models: { choices: [{ name: 'n', imagse: true }] } })).toContain(
      'choices.0.imagse',
    )
    expect(problems(env, { models: { fallbacks: [{ name: 'n', imagse: true }] } })).toContain('fallbacks.0')
    const priced = { ...env, SANDLOT_MAX_COST: '1' }
    expect(
      problems(priced, { prices: { m: { input: 1, output: 1 } }, models: { choices: [{ name: 'n' }] } }),
    ).toContain('no price of n')
  })

  test('problems name their place: an unknown member, a missing key file, two models of one name', () => {
    const env = { OPENAI_MODEL: 'm' }
    expect(problems(env, { models: { fallback: [] } })).toContain('models.fallback is not a setting')
    const wrong = { models: { fallbacks: [{ name: 'm', apiKeyFile: join(folder, 'none') }] } }
    expect(problems(env, wrong)).toContain('models.fallbacks.0.apiKeyFile: cannot read')
    expect(problems(env, wrong)).toContain('two models are called m')
    expect(problems(env, { models: { fallbacks: [{ name: 'm', label: 'm2' }] } })).toBe('')
  })
})
