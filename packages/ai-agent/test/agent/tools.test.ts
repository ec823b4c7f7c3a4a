/** `./sandlot tools`: the command as it is run, with the sources in the place of the build. */
import { mkdirSync, rmSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { tools } from '../../../cli/src/commands/tools.ts'
import { parseCliConfig } from '../../../cli/src/config.ts'
import { createSteps } from '../../../cli/src/steps.ts'
import { nodeEnvironment } from '../../../../test/config.ts'
import type { ToolListing } from '../../src/config/tool-listing.ts'
import { toolParameters } from '../../src/tools/tool-schema.ts'
import { builtinTools } from '../../src/tools/builtin/index.ts'
import { AgentFolder, NO_ENGINE } from '../support/agent-process.ts'
import { SCRIPT } from '../mcp/mcp-bench.ts'

const SOURCE = join(import.meta.dirname, '../../src/agent/tools.ts')
/** Compiled here, where there is no build. */
const PROGRAM = `import { spawnSync } from 'node:child_process'
const args = ['--conditions=sandlot-source', ${JSON.stringify(SOURCE)}]
process.exitCode = spawnSync(process.execPath, args, { stdio: 'inherit' }).status ?? 1
`

let folder: AgentFolder
let env: Record<string, string>

beforeEach(() => {
  folder = new AgentFolder()
  const program = join(folder.path, 'root/packages/ai-agent/dist/agent/tools.js')
  mkdirSync(dirname(program), { recursive: true })
  writeFileSync(join(folder.path, 'root/package.json'), '{"type":"module"}')
  writeFileSync(program, PROGRAM)
  const config = join(folder.path, 'sandlot.json')
  const mcpServers = {
    up: { command: process.execPath, args: [SCRIPT], tools: ['say'] },
    down: { command: process.execPath, args: ['-e', 'process.exit(3)'] },
  }
  const on = { enabled: true }
  const tools = { '*': { enabled: false }, read_file: on, run_shell_command: on }
  writeFileSync(config, JSON.stringify({ mcpServers, tools }))
  env = {
    ...nodeEnvironment(),
    SANDLOT_DATA: folder.path,
    SANDLOT_CONFIG: config,
    DOCKER_HOST: NO_ENGINE,
  }
})

afterEach(async () => {
  await folder[Symbol.asyncDispose]()
  rmSync(folder.path, { recursive: true, force: true })
})

async function printed(...args: string[]): Promise<string[]> {
  const lines: string[] = []
  const steps = createSteps({ write: () => undefined, live: false })
  const config = parseCliConfig(env, join(folder.path, 'root'))
  expect(await tools({ config, args, steps, print: (line) => void lines.push(line) })).toBe(0)
  return lines
}

async function listing(): Promise<ToolListing> {
  const lines = await printed('--json')
  expect(lines).toHaveLength(1)
  return JSON.parse(lines[0] ?? '') as ToolListing
}

/** Each built-in tool as it is to be listed. */
function builtin(): object[] {
  return builtinTools().map(({ name, kind, readOnly, input, description, runs }) => ({
    id: name,
    name,
    source: 'built-in',
    kind,
    readOnly,
    timeoutMs: runs?.timeoutMs,
    available: ['read_file', 'run_shell_command'].includes(name),
    description,
    schema: toolParameters(input),
  }))
}

/** Not on without their credentials. */
const OURS = [
  { name: 'flights-mcp', state: 'unavailable', why: expect.stringContaining('DUFFEL_ACCESS_TOKEN') },
  { name: 'google-calendar-mcp', state: 'unavailable', why: expect.stringContaining('GOOGLE_CLIENT_ID') },
]

test('without an agent: every built-in tool with its schema, those that are offered marked; servers are not known', async () => {
  const why = 'known when Sandlot runs'
  expect(await listing()).toEqual({
    running: false,
    tools: JSON.parse(JSON.stringify(builtin())),
    servers: [{ name: 'down', state: 'unknown', why }, { name: 'up', state: 'unknown', why }, ...OURS],
  })
  const table = await printed()
  expect(table.find((line) => line.startsWith('read_file '))).toMatch(/ built-in +read +yes .*yes$/)
  expect(table.find((line) => line.startsWith('write_file '))).toMatch(/ built-in +edit +no .*no$/)
  expect(table.at(-1)).toBe('Sandlot is not running; this list comes from its configuration.')
})

test('beside an agent: those of a server that is up as well, under the model’s name; of one that is down, why', async () => {
  await folder.listening(env)
  const { running, tools: listed, servers } = await listing()
  expect(running).toBe(true)
  expect(listed.filter(({ source }) => source === 'built-in')).toEqual(
    expect.arrayContaining(JSON.parse(JSON.stringify(builtin()))),
  )
  const others = listed.filter(({ source }) => source !== 'built-in')
  expect(others).toEqual([
    {
      id: 'up::say',
      name: 'say',
      source: 'up',
      kind: expect.any(String),
      readOnly: false,
      // While it reports progress, a server's call continues as long as any may.
      timeoutMs: 300_000,
      available: true,
      description: expect.any(String),
      schema: expect.objectContaining({
        required: ['text'],
        properties: { text: { type: 'string' }, times: { type: 'integer' } },
      }),
    },
  ])
  expect(servers).toMatchObject([
    { name: 'down', state: 'unavailable', why: expect.stringContaining('3') },
    { name: 'up', state: 'ready' },
    ...OURS,
  ])
  const table = await printed()
  expect(table.find((line) => line.startsWith('up::say (say) '))).toMatch(/ up .*yes$/)
  expect(table).toContainEqual(expect.stringMatching(/^MCP server down: unavailable \(.+\)$/))
})
