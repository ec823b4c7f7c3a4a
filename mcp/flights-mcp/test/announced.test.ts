/** The complete announcement of the tool, and the defaults of its settings. */
import { expect, test } from 'vitest'
import { startServer } from '../../mcp-kit/test/stdio-server.ts'
import { readFlightsConfig } from '../src/config.ts'

const MAIN = new URL('../src/main.ts', import.meta.url)
const description: unknown = expect.any(String)

test('is announced with its arguments and defaults', async () => {
  const server = await startServer(MAIN, 'search-flights', {})
  const { tools } = await server.client.listTools()
  await server.close()
  expect(tools.map(({ name }) => name)).toEqual(['search-flights'])
  expect(tools[0]?.annotations).toEqual({ readOnlyHint: true, openWorldHint: true })
  const airport = { type: 'string', pattern: '^[A-Z]{3}$', description }
  const date = { type: 'string', pattern: String.raw`^\d{4}-\d{2}-\d{2}$`, description }
  expect(tools[0]?.inputSchema).toEqual({
    $schema: expect.any(String),
    type: 'object',
    additionalProperties: false,
    required: ['origin', 'destination', 'departure_date'],
    properties: {
      origin: airport,
      destination: airport,
      departure_date: date,
      return_date: date,
      adults: { type: 'integer', minimum: 1, maximum: 9, default: 1, description },
      cabin_class: {
        type: 'string',
        enum: ['economy', 'premium_economy', 'business', 'first'],
        description,
      },
      max_connections: { type: 'integer', minimum: 0, maximum: 2, default: 2, description },
    },
  })
  expect(tools[0]?.outputSchema).toMatchObject({
    type: 'object',
    required: ['flights', 'count', 'status'],
    properties: { status: { enum: ['success', 'partial'] } },
  })
})

test('a search has ten seconds, a user twenty of them a minute, an answer five minutes', () => {
  expect(readFlightsConfig({})).toEqual({
    token: undefined,
    apiUrl: 'https://api.duffel.com',
    perMinute: 20,
    cacheMs: 300_000,
    timeoutMs: 10_000,
  })
})
