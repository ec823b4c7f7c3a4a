import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { MODES } from '../../src/chat/mode.ts'
import {
  editedLegacyLimits,
  LIMIT_NAMES,
  type AgentSettings,
  type EffectiveSettings,
  type SettingSource,
  type TeamSettings,
  agentSettings,
  effectiveSettings,
  effectiveSettingsView,
} from '../../src/account/agent-settings.ts'
import { deploymentSettings } from '../support/deployment-settings.ts'

const DEPLOYMENT = deploymentSettings({
  mcpServers: ['browser', 'search'],
  models: ['main', 'small', 'home'],
  network: { mode: 'none', hosts: ['pypi.org'], ask: false },
  limits: { calls: 50 },
})
const team = (name: string, settings: AgentSettings): TeamSettings => ({ id: `t_${name}`, name, settings })
const teams = (...names: string[]): SettingSource => ({
  kind: 'teams',
  teams: names.map((name) => ({ id: `t_${name}`, name })),
})

const allowsTool = ({ all, single }: EffectiveSettings['tools'], id: string): boolean =>
  Object.hasOwn(single, id) ? single[id]?.value === true : all.value

const toolId = fc.constantFrom('run_shell_command', 'read_file', 'search::web', '__proto__')
const someSettings: fc.Arbitrary<AgentSettings> = fc
  .record(
    {
      tools: fc.oneof(fc.boolean(), fc.dictionary(toolId, fc.boolean())),
      modeCeiling: fc.constantFrom(...MODES),
      network: fc.oneof(
        fc.constant({ mode: 'none' as const }),
        fc.record(
          {
            mode: fc.constant('egress' as const),
            hosts: fc.array(fc.constantFrom('a.org', 'b.org', 'c.org')),
            ask: fc.boolean(),
          },
          { requiredKeys: [] },
        ),
      ),
      mcpServers: fc.array(fc.constantFrom('browser', 'search', 'gone')),
      models: fc.array(fc.constantFrom('main', 'small', 'home', 'gone'), { minLength: 1 }),
      limits: fc.record(
        { turns: fc.integer({ min: 1, max: 1_000 }), calls: fc.nat(9), cost: fc.nat(9) },
        { requiredKeys: [] },
      ),
      instructions: fc.constantFrom('', 'Be brief.', 'Speak French.'),
    },
    { requiredKeys: [] },
  )
  .map((made) => agentSettings.parse(made))
const someTeams = fc
  .uniqueArray(fc.constantFrom('a', 'b', 'c', 'd', 'e'), { maxLength: 5 })
  .chain((names) => fc.tuple(...names.map((name) => someSettings.map((settings) => team(name, settings)))))

describe('what holds for a person', () => {
  test('does not depend on the order of their teams', () => {
    fc.assert(
      fc.property(
        someTeams.chain((all) =>
          fc.tuple(fc.constant(all), fc.shuffledSubarray(all, { minLength: all.length })),
        ),
        someSettings,
        ([all, shuffled], person) => {
          expect(effectiveSettings(DEPLOYMENT, shuffled, person)).toEqual(
            effectiveSettings(DEPLOYMENT, all, person),
          )
        },
      ),
    )
  })

  test('is not changed by a team that says nothing', () => {
    fc.assert(
      fc.property(someTeams, someSettings, (all, person) => {
        expect(effectiveSettings(DEPLOYMENT, [team('aa', {}), ...all], person)).toEqual(
          effectiveSettings(DEPLOYMENT, all, person),
        )
      }),
    )
  })

  test('is what is set for the person alone, where it is', () => {
    fc.assert(
      fc.property(someTeams, someSettings, (all, person) => {
        const { modeCeiling, network, limits, tools } = effectiveSettings(DEPLOYMENT, all, person)
        const own: SettingSource = { kind: 'person' }
        if (person.modeCeiling !== undefined)
          expect(modeCeiling).toEqual({ value: person.modeCeiling, from: own })
        if (person.network?.hosts !== undefined)
          expect(network.hosts).toEqual({ value: person.network.hosts, from: own })
        for (const name of LIMIT_NAMES)
          if (person.limits?.[name] !== undefined)
            expect(limits[name]).toEqual({ value: person.limits[name], from: own })
        if (typeof person.tools === 'object')
          for (const [id, allowed] of Object.entries(person.tools))
            expect(allowsTool(tools, id)).toBe(allowed)
      }),
    )
  })

  test('names for every value where it comes from: a team that says it, or nobody does', () => {
    fc.assert(
      fc.property(someTeams, someSettings, (all, person) => {
        const effective = effectiveSettings(DEPLOYMENT, all, person)
        expect(effectiveSettingsView.parse(effective)).toEqual(effective)
        const { from, value } = effective.modeCeiling
        if (from.kind === 'deployment')
          expect([value, ...all.map(({ settings }) => settings.modeCeiling)]).toEqual([
            'yolo',
            ...all.map(() => undefined),
          ])
        if (from.kind !== 'teams') return
        const named = all.filter(({ id }) => from.teams.some((one) => one.id === id))
        expect(named.length).toBeGreaterThan(0)
        expect(named.every(({ settings }) => settings.modeCeiling === value)).toBe(true)
      }),
    )
  })

  test('of several teams is the most generous, of each setting by itself', () => {
    const data = team('data', {
      modeCeiling: 'manual',
      tools: { run_shell_command: false, write_file: false },
      network: { mode: 'egress', hosts: ['b.org'] },
      models: ['home'],
      limits: { calls: 7, cost: 3 },
      instructions: 'Use pandas.',
    })
    const ops = team('ops', {
      modeCeiling: 'auto-edit',
      tools: { run_shell_command: true },
      network: { hosts: ['a.org'], ask: true },
      models: ['small', 'gone'],
      limits: { calls: 0, turns: 5 },
      instructions: 'Be careful.',
    })
    const effective = effectiveSettings(DEPLOYMENT, [ops, data], { instructions: 'I am new.' })
    expect(effective).toMatchObject({
      modeCeiling: { value: 'auto-edit', from: teams('ops') },
      tools: {
        all: { value: true, from: { kind: 'deployment' } },
        single: {
          run_shell_command: { value: true, from: teams('ops') },
          write_file: { value: false, from: teams('data') },
        },
      },
      models: { value: ['small', 'home'], from: teams('data', 'ops') },
      mcpServers: { value: ['browser', 'search'], from: { kind: 'deployment' } },
      network: {
        mode: { value: 'egress', from: teams('data') },
        hosts: { value: ['a.org', 'b.org'], from: teams('data', 'ops') },
        ask: { value: true, from: teams('ops') },
      },
      limits: {
        calls: { value: 0, from: teams('ops') },
        cost: { value: 3, from: teams('data') },
        // Lower than the deployment's, and effective all the same.
        turns: { value: 5, from: teams('ops') },
        tokens: { value: 0, from: { kind: 'deployment' } },
      },
    })
    expect(effective.instructions.map(({ value }) => value)).toEqual([
      'Use pandas.',
      'Be careful.',
      'I am new.',
    ])
  })

  test('a tool that a team takes away comes back only by its name', () => {
    const without = team('data', { tools: { run_shell_command: false } })
    const withAll = effectiveSettings(DEPLOYMENT, [without], { tools: true })
    expect(allowsTool(withAll.tools, 'run_shell_command')).toBe(false)
    const none = effectiveSettings(DEPLOYMENT, [team('ops', { tools: { read_file: true } })], {
      tools: false,
    })
    expect(allowsTool(none.tools, 'read_file')).toBe(false)
    const one = effectiveSettings(DEPLOYMENT, [team('ops', { tools: false })], { tools: { read_file: true } })
    expect([allowsTool(one.tools, 'read_file'), allowsTool(one.tools, 'write_file')]).toEqual([true, false])
  })

  test('models that the operator has taken out leave the deployment’s own', () => {
    expect(effectiveSettings(DEPLOYMENT, [], { models: ['gone'] }).models).toEqual({
      value: ['main'],
      from: { kind: 'deployment' },
    })
    expect(agentSettings.safeParse({ models: [] }).success).toBe(false)
  })
})

test('limits of the previous version can be kept and removed, but not set', () => {
  const before = { limits: { calls: 5, turns: 9 }, together: { secondsPerDay: 60 } }
  expect(editedLegacyLimits(before, before)).toEqual([])
  expect(editedLegacyLimits(before, { limits: { turns: 10, costPerDay: 1 } })).toEqual([])
  expect(
    editedLegacyLimits(before, { limits: { calls: 6, tokens: 1 }, together: { secondsPerDay: 61 } }),
  ).toEqual(['calls', 'tokens', 'secondsPerDay'])
})
