/** The complete announcement of the tool, and the defaults of its settings. */
import { expect, test } from 'vitest'
import { startServer } from '../../mcp-kit/test/stdio-server.ts'
import { readCalendarConfig } from '../src/config.ts'

const MAIN = new URL('../src/main.ts', import.meta.url)
const description: unknown = expect.any(String)

test('is announced with its arguments and defaults', async () => {
  const server = await startServer(MAIN, 'list-events', {})
  const { tools } = await server.client.listTools()
  await server.close()
  expect(tools.map(({ name }) => name)).toEqual(['list-events'])
  expect(tools[0]?.annotations).toEqual({ readOnlyHint: true, openWorldHint: true })
  const time = { type: 'string', maxLength: 40, description: expect.stringContaining('ISO 8601') }
  expect(tools[0]?.inputSchema).toEqual({
    $schema: expect.any(String),
    type: 'object',
    additionalProperties: false,
    // Without `required`: each may be left out.
    properties: {
      calendarId: { type: 'string', minLength: 1, maxLength: 300, default: 'primary', description },
      timeMin: time,
      timeMax: time,
      maxResults: { type: 'integer', minimum: 1, maximum: 2500, default: 25, description },
      singleEvents: { type: 'boolean', default: false, description },
    },
  })
  expect(tools[0]?.outputSchema).toMatchObject({
    type: 'object',
    required: ['events', 'count', 'status'],
    properties: { status: { enum: ['success', 'partial'] } },
  })
})

test('a lookup has ten seconds, a user sixty of them a minute, an answer one minute', () => {
  expect(readCalendarConfig({})).toEqual({
    credential: undefined,
    apiUrl: 'https://www.googleapis.com',
    tokenUrl: 'https://oauth2.googleapis.com/token',
    perMinute: 60,
    cacheMs: 60_000,
    timeoutMs: 10_000,
    secrets: [],
  })
})
