import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { type ServerTool, exposedNames, toolId } from '../../src/mcp/exposed-names.ts'

const namesOf = (tools: readonly (readonly [string, string])[], taken: readonly string[] = []): string[] => {
  const list = tools.map(([server, tool]) => ({ server, tool }))
  const names = exposedNames(list, taken)
  return list.map((tool) => names.get(toolId(tool)) ?? 'nothing')
}

describe('names that the model uses', () => {
  test('are the tool’s own, made legal', () => {
    expect(
      namesOf([
        ['flights-mcp', 'search-flights'],
        ['calendar', 'list.events'],
      ]),
    ).toEqual(['search_flights', 'list_events'])
  })

  test('take their server’s name on a collision, all that are involved, and a built-in tool never', () => {
    expect(
      namesOf(
        [
          ['one', 'find'],
          ['two', 'find'],
          ['one', 'echo'],
          ['one', 'alone'],
        ],
        ['echo'],
      ),
    ).toEqual(['one_find', 'two_find', 'one_echo', 'alone'])
  })

  test('that still collide, and those that are too long, end in a hash', () => {
    const [one, two] = namesOf([
      ['a_b', 'c'],
      ['a', 'b_c'],
      ['x', 'c'],
      ['x', 'b_c'],
    ])
    expect([one, two]).toEqual([
      expect.stringMatching(/^a_b_c_[0-9a-f]{8}$/),
      expect.stringMatching(/^a_b_c_[0-9a-f]{8}$/),
    ])
    expect(one).not.toBe(two)
    const [long] = namesOf([['s', 'n'.repeat(100)]])
    expect(long).toMatch(/^n{55}_[0-9a-f]{8}$/)
  })

  test('are legal, different, and the same in whatever order the tools come', () => {
    const tool = fc.record({
      server: fc.constantFrom('a', 'a-b', 'a_b', 'srv'),
      tool: fc.oneof(
        fc.string({ minLength: 1, maxLength: 80 }),
        fc.constantFrom('b', 'b_c', 'a_b', 'echo', '日本', '中国'),
      ),
    })
    fc.assert(
      fc.property(fc.array(tool, { maxLength: 12 }), (tools: ServerTool[]) => {
        const unique = [...new Map(tools.map((one) => [toolId(one), one])).values()]
        const names = exposedNames(unique, ['echo', 'b'])
        const list = [...names.values()]
        expect(list.every((name) => /^[A-Za-z0-9_-]{1,64}$/.test(name))).toBe(true)
        expect(new Set([...list, 'echo', 'b']).size).toBe(list.length + 2)
        const turned = exposedNames(unique.toReversed(), ['echo', 'b'])
        expect(Object.fromEntries(turned)).toEqual(Object.fromEntries(names))
      }),
    )
  })
})
