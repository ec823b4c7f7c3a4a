import { readFileSync, readdirSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { builtinTools } from '../../src/tools/builtin/index.ts'

const PACKAGES = join(import.meta.dirname, '../../..')

/** Whose business no single tool is. */
const MAY_NOT_KNOW =
  /^(?:ai-agent\/src\/(?:loop|session|history|agent-loop|scheduler\/|policies\/|acp\/|metrics\/|replay\/)|service\/src\/|web\/src\/)/

function sources(folder: string): string[] {
  return readdirSync(join(PACKAGES, folder), { recursive: true, encoding: 'utf8' })
    .filter((path) => /\.tsx?$/.test(path))
    .map((path) => join(folder, path))
    .filter((path) => MAY_NOT_KNOW.test(path))
}

test('no tool is known by its name to the loop, the scheduler, the policies, the session, the service or the page', () => {
  const names = builtinTools().map(({ name }) => name)
  const paths = ['ai-agent/src', 'service/src', 'web/src'].flatMap(sources)
  expect(names.length).toBeGreaterThan(10)
  expect(paths.length).toBeGreaterThan(100)
  const known = paths.flatMap((path) => {
    const text = readFileSync(join(PACKAGES, path), 'utf8')
    // As a value that something is compared with or chosen by; “stop” and “echo” are words of their own.
    return names
      .filter((name) => name.includes('_') && new RegExp(`['"\`]${name}['"\`]`).test(text))
      .map((name) => `${path}: ${name}`)
  })
  expect(known).toEqual([])
})
