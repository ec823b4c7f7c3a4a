/**
 * The contract of the wires: each scenario, over each of them and however its bytes are cut, leaves the same log, and
 * every request is one that the strictest endpoint of its wire takes.
 */
import type { WireName } from '@sandlot/shared/account/models-api'
import { describe, expect, test } from 'vitest'
import { sample } from '../../../../test/campaign.ts'
import { SCENARIOS, type Scenario } from './scenarios.ts'
import { CUTS, Stage } from './stage.ts'
import { normal, tell } from './tell.ts'

const WIRES: readonly WireName[] = ['chat', 'responses', 'anthropic']

describe.each(SCENARIOS)('$name', (scenario) => {
  let first: unknown
  test.for(WIRES.filter((wire) => scenario.not?.[wire] === undefined))('%s', async (wire) => {
    const log = await playAll(scenario, wire)
    first ??= log
    expect(log).toEqual(first)
  })
})

/** The normal form of the log, which is the same for every cut. */
async function playAll(scenario: Scenario, wire: WireName): Promise<unknown> {
  const { tells, check, act = (on) => on.ask('go').then(() => undefined) } = scenario
  await using stage = await Stage.start(wire, scenario)
  const whole = await stage.play(undefined, act)
  expect(tell(whole)).toEqual(tells)
  expect(stage.problems).toEqual([])
  check?.(stage)
  const log = normal(whole)
  for (const cut of sample(`contract ${scenario.name} ${wire}`, CUTS, 5)) {
    expect(normal(await stage.play(cut, act)), `cut ${cut}`).toEqual(log)
    expect(stage.problems, `cut ${cut}`).toEqual([])
  }
  return log
}
