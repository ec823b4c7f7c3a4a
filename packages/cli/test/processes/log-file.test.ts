import { execFileSync } from 'node:child_process'
import { createReadStream, mkdirSync, readFileSync, rmdirSync } from 'node:fs'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import fc from 'fast-check'
import { beforeEach, describe, expect, test } from 'vitest'
import { createLog, lineSplitter, problemIn } from '../../src/processes/log-file.ts'
import { testFolder } from '../../../../test/folders.ts'

describe('what of a log a person sees', () => {
  test.each([
    ['', undefined],
    ['{"level":30,"msg":"listening"}', undefined],
    ['{"level":50,"msg":"the engine is gone"}', 'the engine is gone'],
    ['{"level":50,"msg":"cannot start","err":{"message":"no such image"}}', 'cannot start: no such image'],
    ['{"level":60,"msg":"no such image","err":{"message":"no such image"}}', 'no such image'],
    ['TypeError: x is not a function', 'TypeError: x is not a function'],
    ['{"not":"a log entry"}', '{"not":"a log entry"}'],
    ['{broken', '{broken'],
  ])('%s', (line, shown) => expect(problemIn(line)).toBe(shown))

  test('lines come out whole however the text is cut', () => {
    fc.assert(
      fc.property(fc.array(fc.constantFrom('a', 'b', '\n', 'é')), (pieces) => {
        const lines: string[] = []
        const splitter = lineSplitter((line) => lines.push(line))
        for (const piece of pieces) splitter.push(piece)
        splitter.end()
        const text = pieces.join('')
        expect(lines).toEqual(
          text.endsWith('\n') || text === '' ? text.split('\n').slice(0, -1) : text.split('\n'),
        )
      }),
    )
  })
})

describe('a log', () => {
  let folder: string
  beforeEach(() => void (folder = testFolder('log')))

  test('that could not be written is written again as soon as it can be', async () => {
    const file = join(folder, 'child.log')
    mkdirSync(file)
    const failed = Promise.withResolvers<string>()
    const log = createLog(file, failed.resolve)
    log.write('lost\n')
    expect(await failed.promise).toContain('EISDIR')
    rmdirSync(file)
    log.write('kept\n')
    await log.end(10_000)
    expect(readFileSync(file, 'utf8')).toBe('kept\n')
  })

  test('whose disk hangs keeps a part of the output, and then reports how much is missing', async () => {
    const file = join(folder, 'child.log')
    execFileSync('mkfifo', [file])
    const problems: string[] = []
    const log = createLog(file, (problem) => problems.push(problem))
    const line = (n: number): string => `${String(n).padStart(1_023, '.')}\n`
    for (let n = 0; n < 10_000; n++) log.write(line(n))
    expect(problems).toEqual([expect.stringContaining('too slow')])
    const reading = text(createReadStream(file))
    await log.end(10_000)
    const lines = (await reading).split('\n')
    const said: unknown = JSON.parse(lines.at(-2) ?? '')
    const kept = lines.slice(0, -2)
    expect(kept).toEqual(kept.map((_, n) => line(n).trimEnd()))
    expect(kept.length).toBeGreaterThan(1_000)
    expect(kept.length).toBeLessThan(5_000)
    expect(said).toMatchObject({
      level: 40,
      msg: expect.stringContaining(`${(10_000 - kept.length) * 1_024} bytes`),
    })
  })

  test('continues after a loss as soon as the disk accepts writes again', async () => {
    const file = join(folder, 'child.log')
    execFileSync('mkfifo', [file])
    const log = createLog(file, () => {})
    for (let n = 0; n < 5; n++) log.write(`${'x'.repeat(2 ** 20)}\n`)
    log.write('lost\n')
    const seen: string[] = []
    const reader = createReadStream(file, 'utf8').on('data', (part) => seen.push(String(part)))
    const after = async (): Promise<string> => {
      log.write('after\n')
      return seen.join('').slice(-20_000)
    }
    await expect
      .poll(after, { timeout: 20_000 })
      .toMatch(/ bytes of this log are missing here.*\n(after\n)+$/)
    expect(seen.join('')).not.toContain('\nlost')
    await log.end(10_000)
    reader.destroy()
  })

  test('on a disk that hangs is given up', async () => {
    // A pipe is opened for writing when somebody opens it for reading.
    const file = join(folder, 'child.log')
    execFileSync('mkfifo', [file])
    const problems: string[] = []
    const log = createLog(file, (problem) => problems.push(problem))
    log.write('late\n')
    await log.end(1)
    expect(problems).toEqual([expect.stringContaining('Couldn’t write its log within')])
    expect(await text(createReadStream(file))).toBe('late\n')
  })
})
