/** `./sandlot bench agent` at its smallest: that it measures and writes, not how fast. */
import { execFile, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, readFileSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { expect, test } from 'vitest'
import { oneRunOfThree } from '../../../test/campaign.ts'
import { nodeEnvironment } from '../../../test/config.ts'

const PROGRAM = fileURLToPath(new URL('../bench/agent.ts', import.meta.url))

interface Written {
  machine: { samples: number; many: number }
  results: {
    goal: string
    series: { name: string; values: number[]; failures: number }[]
    verdicts: { reached: boolean }[]
  }[]
}

test('the goals that need nobody beside us are measured, printed and written', async ({ skip }) => {
  oneRunOfThree('goals of the agent', skip)
  const folder = mkdtempSync(join(tmpdir(), 'sandlot-bench-test-'))
  try {
    const json = join(folder, 'figures.json')
    const page = join(folder, 'page.md')
    writeFileSync(page, '# Benchmarks\n\nSaid before.\n\n# The agent\n\nOld.\n')
    const sizes = ['--samples', '1', '--prompts', '1', '--only', 'A3,A6']
    const args = ['--conditions=sandlot-source', PROGRAM, ...sizes, '--json', json, '--markdown', page]
    const { code, stdout, stderr } = await promisify(execFile)(process.execPath, args).then(
      (output) => ({ code: 0, ...output }),
      (error: { code: number; stdout: string; stderr: string }) => error,
    )
    // Nothing was installed, and nothing could not be measured.
    expect(stderr).toBe('')
    const { machine, results } = JSON.parse(readFileSync(json, 'utf8')) as Written
    expect(machine).toMatchObject({ samples: 1, many: 1 })
    expect(results.map(({ goal }) => goal)).toEqual(['A3', 'A6', 'A6'])
    // One sample on a busy machine may miss a goal.
    const missed = results.some(({ verdicts }) => verdicts.some(({ reached }) => !reached))
    expect(code).toBe(missed ? 1 : 0)
    for (const { name, values, failures } of results.flatMap(({ series }) => series)) {
      expect([name, failures]).toEqual([name, 0])
      expect(values.length).toBeGreaterThan(0)
      expect(values.every((value) => Number.isFinite(value) && value >= 0)).toBe(true)
      expect(stdout).toContain(name)
      expect(readFileSync(page, 'utf8')).toContain(name)
    }
    expect(readFileSync(page, 'utf8')).toMatch(/^# Benchmarks\n\nSaid before\.\n\n# The agent\n(?![^]*Old\.)/)
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
})

test('one that is interrupted removes what it made', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'sandlot-bench-test-'))
  try {
    const args = ['--conditions=sandlot-source', PROGRAM, '--samples', '1000000', '--only', 'A3']
    const bench = spawn(process.execPath, args, { env: { ...nodeEnvironment(), TMPDIR: folder } })
    // The machine is notified when everything has been made.
    await once(bench.stdout, 'data')
    expect(readdirSync(folder)).not.toEqual([])
    bench.kill('SIGINT')
    expect(await once(bench, 'exit')).toEqual([130, null])
    expect(readdirSync(folder)).toEqual([])
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
})

test('what is no goal is told, with those that there are', async () => {
  const args = ['--conditions=sandlot-source', PROGRAM, '--only', 'A3,B1']
  await expect(promisify(execFile)(process.execPath, args)).rejects.toMatchObject({
    stderr: expect.stringMatching(/no goal B1\. Known: A1, A2, A3/),
  })
})
