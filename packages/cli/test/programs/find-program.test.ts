import { mkdir, mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { programArguments } from '../../src/programs/find-program.ts'

test('a program runs from its sources only where their dependencies are installed', async () => {
  const root = await mkdtemp(join(tmpdir(), 'sandlot-program-'))
  const folder = join(root, 'packages', 'service')
  const read = () => programArguments({ root }, 'service', 'main')
  expect(read).toThrow('Sandlot has not been built yet.')
  await mkdir(join(folder, 'node_modules'), { recursive: true })
  expect(read()).toEqual(['--conditions=sandlot-source', join(folder, 'src', 'main.ts')])
  await rm(root, { recursive: true })
})
