import { describe, expect, test } from 'vitest'
import { z } from 'zod'
import { builtinTools } from '../../src/tools/builtin/index.ts'
import { ToolDefinitionError, createRegistry, validateToolDefinitions } from '../../src/tools/registry.ts'
import type { Tool } from '../../src/tools/tool.ts'

const [first] = builtinTools()
const make = ({
  id = 'x',
  timeoutMs,
  ...change
}: Partial<Tool> & { id?: string; timeoutMs?: number }): Tool => ({
  ...(first ?? expect.fail()),
  name: 'x',
  runs: { as: { id }, timeoutMs },
  ...change,
})

describe('registry', () => {
  test('the built-in tools are good, and found by id and name', () => {
    const registry = createRegistry()
    registry.register(...builtinTools())
    expect(validateToolDefinitions(builtinTools())).toEqual([])
    const names = builtinTools().map(({ name }) => name)
    expect(registry.listTools().map(({ name }) => name)).toEqual(names.toSorted())
    expect(registry.has('echo')).toBe(true)
    expect(registry.unregister('echo')).toBe(true)
    expect(registry.unregister('echo')).toBe(false)
    expect(registry.has('echo')).toBe(false)
    expect(registry.modelTools().map(({ name }) => name)).not.toContain('echo')
  })

  test('every built-in tool that makes data for the screen declares it', () => {
    const declared = builtinTools().flatMap(({ name, output }) => (output === undefined ? [] : [name]))
    expect(declared).toEqual([
      'run_shell_command',
      'read_output',
      'stop',
      'read_file',
      'write_file',
      'edit_file',
      'list_directory',
      'ask_user',
      'echo',
    ])
  })

  test('a tool of a server is found by both of its names', () => {
    const registry = createRegistry()
    const tool = make({ id: 'flights-mcp::search-flights', name: 'search_flights' })
    registry.register(tool)
    expect(registry.getTool('flights-mcp::search-flights')).toBe(tool)
    expect(registry.getTool('search_flights')).toBe(tool)
    expect(registry.getTool('search-flights')).toBeUndefined()
  })

  test('every problem is listed at once, with the tool it belongs to', () => {
    const untyped = z.strictObject({ a: z.any(), b: z.string() })
    const problems = validateToolDefinitions([
      make({ id: 'bad name', name: 'no spaces!' }),
      make({ id: 'two', name: 'two', description: ' ', timeoutMs: 5 }),
      make({ id: 'three', name: 'three', input: untyped }),
      make({ id: 'two', name: 'four' }),
      make({ id: 'five', name: 'five', output: { type: 'object' } as never }),
    ])
    expect(problems).toEqual([
      'bad name: its id must be a name, or server::tool',
      'bad name: its name must be 1–64 of A–Z a–z 0–9 _ -, not "no spaces!"',
      'two: it has no description',
      'two: its timeoutMs must be 1000–300000',
      'three: its argument a has no type',
      'three: its argument a has no description',
      'three: its argument b has no description',
      'five: its output is not a zod schema',
      'two: 2 tools have this id',
    ])
  })

  test('a bad tool registers nothing and says which', () => {
    const registry = createRegistry()
    expect(() => registry.register(make({}), make({ id: 'y', description: '' }))).toThrow(ToolDefinitionError)
    expect(registry.listTools()).toEqual([])
    registry.register(make({}))
    expect(() => registry.register(make({ id: 'z' }))).toThrow('x: 2 tools have this name')
  })

  test('the model gets derived schemas, the same bytes each time, whatever the order of registration', () => {
    const one = createRegistry()
    one.register(...builtinTools())
    const two = createRegistry()
    two.register(...builtinTools().toReversed())
    expect(JSON.stringify(one.modelTools())).toBe(JSON.stringify(two.modelTools()))
    const shell = one.modelTools().find(({ name }) => name === 'run_shell_command')
    expect(JSON.stringify(shell?.parameters)).toMatch(
      /^\{"type":"object","properties":\{"command":\{"type":"string","description":/,
    )
    expect(shell?.parameters).toMatchObject({
      required: ['command'],
      additionalProperties: false,
      properties: { timeout_ms: { type: 'integer', minimum: 1000, maximum: 300_000, default: 120_000 } },
    })
    expect(Object.keys(shell?.parameters['properties'] ?? {})).toEqual([
      'command',
      'description',
      'cwd',
      'timeout_ms',
      'background',
    ])
  })

  test('finding one of a thousand tools does not look at the others', () => {
    let looks = 0
    const watched = (tool: Tool): Tool =>
      new Proxy(tool, {
        get(target, member) {
          looks += 1
          return Reflect.get(target, member)
        },
      })
    const tools = Array.from({ length: 1000 }, (_, index) =>
      watched(make({ id: `s::t${index}`, name: `t${index}` })),
    )
    const registry = createRegistry()
    registry.register(...tools)
    looks = 0
    expect([registry.getTool('t999') === tools[999], registry.getTool('s::t999') === tools[999]]).toEqual([
      true,
      true,
    ])
    expect([registry.getTool('missing'), registry.has('t500')]).toEqual([undefined, true])
    expect(looks).toBe(0)
  })

  test('the lists are made once, until a tool is registered or removed', () => {
    const registry = createRegistry()
    registry.register(make({ id: 's::a', name: 'a' }))
    expect(registry.listTools()).toBe(registry.listTools())
    expect(registry.modelTools()).toBe(registry.modelTools())
  })
})
