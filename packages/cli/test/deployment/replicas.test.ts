/** Several agents and services on one machine: which there may be, and how each is started. */
import { expect, test } from 'vitest'
import { childSpec, logOf } from '../../src/processes/children.ts'
import { parseCliConfig } from '../../src/config.ts'
import { readReplicas, replicaId, serviceUrls } from '../../src/deployment/replicas.ts'

const config = (settings: Record<string, string> = {}) =>
  parseCliConfig({ SANDLOT_DATA: '/data', ...settings })
const onPostgres = config({ DATABASE_URL: 'postgres://sandlot@db.example.org/sandlot', SANDLOT_REPLICA: 'a' })

test('more than one of each needs PostgreSQL, and says so', () => {
  expect(readReplicas([], config())).toBe(1)
  expect(readReplicas(['--replicas', '1'], config())).toBe(1)
  expect(() => readReplicas(['--replicas', '2'], config())).toThrow(
    'Several agents and services need PostgreSQL',
  )
  expect(readReplicas(['--replicas', '2'], onPostgres)).toBe(2)
  expect(() => readReplicas(['--replicas', '0'], onPostgres)).toThrow('a number from 1 to 16')
  expect(readReplicas(['--replica', '2'], onPostgres)).toBeUndefined()
})

test('each agent has an id, each service a port, each a log, and both share the data', () => {
  const agent = childSpec('ai-agent', onPostgres, 2)
  expect(agent).toMatchObject({
    name: 'ai-agent-2',
    log: logOf('ai-agent', onPostgres, 2),
    environment: { SANDLOT_REPLICA: 'a-2', SANDLOT_DATA: '/data' },
  })
  expect(childSpec('service', onPostgres, 2)).toMatchObject({
    name: 'service-2',
    log: '/data/log/service-2.log',
    environment: { PORT: '8003', SANDLOT_DATA: '/data' },
  })
  expect(serviceUrls('http://127.0.0.1:8002', 2)).toEqual(['http://127.0.0.1:8002', 'http://127.0.0.1:8003'])
})

test('of one on PostgreSQL the id is that of the machine, and on files there is none', () => {
  expect(childSpec('ai-agent', onPostgres).environment).toMatchObject({ SANDLOT_REPLICA: 'a' })
  expect(childSpec('ai-agent', config()).environment).not.toHaveProperty('SANDLOT_REPLICA')
  expect(replicaId(config(), undefined)).toMatch(/^[a-z0-9-]{1,24}$/)
})
