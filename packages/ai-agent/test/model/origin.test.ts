/** The origin of answers: which changes of an endpoint make their reasoning worthless. */
import { expect, test } from 'vitest'
import { openSessionStore } from '@sandlot/storage/store/open'
import { join } from 'node:path'
import { fileFolder } from '../../../../test/folders.ts'
import { ModelRegistry } from '../../src/model/model-registry.ts'

const folder = fileFolder('origin')
const ENDPOINT = { baseUrl: 'https://api.example.com/v1', apiKey: 'sk-weak', name: 'gpt-5.5-2026-03-01' }

test('it changes with the address, the key, the family of models and the deployment, and with nothing else', async () => {
  const store = await openSessionStore(join(folder, 'sessions.db'))
  const secrets = { get: async () => undefined, set: async () => undefined, remove: async () => false }
  const silence = { idleMs: 1_000, progressMs: 1_000 }
  const originOf = async (more: object = {}, byte = 1): Promise<string> => {
    const registry = await ModelRegistry.open({
      rows: store.people.modelEndpoints,
      secrets,
      configured: { main: { ...ENDPOINT, ...more }, choices: [], fallbacks: [], silence },
      silence,
      originKey: new Uint8Array(32).fill(byte),
      prices: {},
      limitsCost: () => false,
      now: Date.now,
      log: { warn: () => undefined },
    })
    return registry.model.origin ?? ''
  }
  const first = await originOf()
  expect(first).toMatch(/^[\w-]{22}$/)
  const same = [
    {},
    { label: 'Ours' },
    { name: 'gpt-5.5' },
    { name: 'gpt-5.5-20260401' },
    { contextWindow: 9_000 },
  ]
  expect(new Set(await Promise.all(same.map((more) => originOf(more))))).toEqual(new Set([first]))
  const others = [{ name: 'gpt-5.4' }, { apiKey: 'sk-other' }, { baseUrl: 'https://eu.example.com/v1' }]
  const all = [first, await originOf({}, 2), ...(await Promise.all(others.map((more) => originOf(more))))]
  expect(new Set(all).size).toBe(5)
  await store.close()
})
