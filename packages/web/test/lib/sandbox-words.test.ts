import { expect, test } from 'vitest'
import { cpuShare, networkWords, stepWords } from '../../src/lib/sandbox-text.ts'

test('what a sandbox may reach is said in a sentence', () => {
  const words = (mode: 'none' | 'egress', hosts: string[] = [], ask = false) =>
    networkWords({ mode, hosts, ask })
  expect(words('none', ['example.org'])).toBe('No network.')
  expect(words('egress')).toBe('No network hosts allowed.')
  expect(words('egress', ['a.org'], true)).toBe('Only a.org. The agent may ask you for more hosts.')
  expect(words('egress', ['a.org', 'b.org', 'c.org'])).toBe('Only a.org, b.org and c.org.')
  expect(
    words(
      'egress',
      Array.from({ length: 20 }, (_, n) => `h${n}`),
    ),
  ).toMatch(/h11 and 8 more\./)
})

test('the share of its processors is between two looks', () => {
  expect(cpuShare({ cpuMs: 0, at: 0 }, { cpuMs: 1_000, at: 1_000 }, 2)).toBe(0.5)
  expect(cpuShare({ cpuMs: 0, at: 0 }, { cpuMs: 9_000, at: 1_000 }, 2)).toBe(1)
  // It was restarted in between.
  expect(cpuShare({ cpuMs: 5_000, at: 0 }, { cpuMs: 10, at: 1_000 }, 2)).toBe(0)
})

test('the steps of a start are lines', () => {
  const words = (step: 'container' | 'hello' | 'pool', about: string) =>
    stepWords({ at: 0, step, about }, 'img:1')
  expect(words('container', 'abc')).toBe('Container abc runs, from img:1')
  expect(words('hello', 'protocol 4')).toBe('Its supervisor, sbxd, has answered: protocol 4')
  expect(words('pool', 'abc')).toBe('A prepared container was free: abc')
})
