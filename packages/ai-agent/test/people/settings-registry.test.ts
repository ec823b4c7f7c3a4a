/** Two registries on one store, as of two agents. */
import { join } from 'node:path'
import { openSessionStore } from '@sandlot/storage/store/open'
import { expect, onTestFinished, test } from 'vitest'
import { fileFolder } from '../../../../test/folders.ts'
import { deploymentSettings } from '../../../shared/test/support/deployment-settings.ts'
import { SettingsRegistry } from '../../src/people/settings-registry.ts'
import { log } from '../support/personal-settings.ts'

const folder = fileFolder('settings-registry')

test('a change of name or members is stored after another agent has changed the row', async () => {
  const store = await openSessionStore(join(folder, 'sessions.db'))
  onTestFinished(() => store.close())
  const team = { kind: 'team', id: 't_one' } as const
  const seeds = {
    rows: [{ subject: team, name: 'One', settings: {}, members: ['ada'] }],
    sections: ['teams'],
  }
  const parts = {
    rows: store.people.settings,
    people: { get: () => undefined, all: new Map() },
    deployment: deploymentSettings({}),
    tools: [],
    problem: () => undefined,
    now: Date.now,
    log,
  }
  const open = (): Promise<SettingsRegistry> => SettingsRegistry.open(parts, seeds)
  const [stale, other] = [await open(), await open()]
  await other.put(team, { settings: { modeCeiling: 'manual' }, revision: 1 }, undefined)

  await stale.rename(team, 'Two')
  const [renamed] = await store.people.settings.all()
  expect(renamed).toMatchObject({ name: 'Two', settings: { modeCeiling: 'manual' }, revision: 3 })
  expect(stale.all).toEqual([renamed])

  await other.adopted([team.id])
  expect(await store.people.settings.all()).toMatchObject([{ name: 'Two', members: undefined, revision: 4 }])
})
