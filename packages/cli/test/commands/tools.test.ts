import { expect, test } from 'vitest'
import { toolTable } from '../../src/commands/tools.ts'

test('a table of the offered tools and the state of MCP servers', () => {
  const tool = { kind: 'read', readOnly: true, source: 'built-in', available: true }
  expect(
    toolTable({
      running: false,
      tools: [
        { ...tool, id: 'read_file', name: 'read_file', timeoutMs: 5000 },
        { ...tool, id: 'srv::look-up', name: 'look_up', source: 'srv', readOnly: false, available: false },
      ],
      servers: [{ name: 'srv', state: 'unavailable', why: 'it ended' }],
    }),
  ).toEqual([
    'TOOL                    SOURCE    KIND  READS ONLY  TIME-OUT  OFFERED',
    'read_file               built-in  read  yes         5 s       yes',
    'srv::look-up (look_up)  srv       read  no          default   no',
    'MCP server srv: unavailable (it ended)',
    'Sandlot is not running; this list comes from its configuration.',
  ])
})
