import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { lineDiff } from '../../src/transcript/line-diff.ts'

const linesOf = (text: string) => (text === '' ? [] : text.replace(/\n$/, '').split('\n'))

describe('a unified diff', () => {
  test('one changed line with its context and both numbers', () => {
    const before = Array.from({ length: 9 }, (_, i) => `line ${i + 1}`).join('\n')
    const diff = lineDiff(before, before.replace('line 5', 'LINE 5'))
    expect(diff).toMatchObject({ added: 1, removed: 1 })
    expect(diff.hunks).toHaveLength(1)
    expect(
      diff.hunks[0]?.map((line) => `${line.oldNo ?? '-'} ${line.newNo ?? '-'} ${line.type} ${line.text}`),
    ).toEqual([
      '2 2 same line 2',
      '3 3 same line 3',
      '4 4 same line 4',
      '5 - del line 5',
      '- 5 add LINE 5',
      '6 6 same line 6',
      '7 7 same line 7',
      '8 8 same line 8',
    ])
  })

  test('changes far apart are two hunks, near ones are one', () => {
    const lines = Array.from({ length: 40 }, (_, i) => `${i}`)
    const change = (...at: number[]) =>
      lines.map((line, i) => (at.includes(i) ? `${line}!` : line)).join('\n')
    expect(lineDiff(lines.join('\n'), change(5, 30)).hunks).toHaveLength(2)
    expect(lineDiff(lines.join('\n'), change(5, 11)).hunks).toHaveLength(1)
  })

  test('a new file, an emptied file, no change', () => {
    expect(lineDiff(null, 'a\nb\n')).toMatchObject({ added: 2, removed: 0 })
    expect(lineDiff('a\nb\n', '')).toMatchObject({ added: 0, removed: 2 })
    expect(lineDiff('a\n', 'a\n')).toEqual({ hunks: [], added: 0, removed: 0 })
  })

  test('a moved line costs one removal and one addition', () => {
    expect(lineDiff('a\nb\nc\nd\n', 'b\nc\nd\na\n')).toMatchObject({ added: 1, removed: 1 })
  })

  test('thousands of different lines are answered at once, as replaced', () => {
    const text = (prefix: string) => Array.from({ length: 5000 }, (_, i) => `${prefix}${i}`).join('\n')
    expect(lineDiff(text('a'), text('b'))).toMatchObject({ added: 5000, removed: 5000 })
  })
})

const text = fc
  .array(fc.constantFrom('a', 'b', 'c', '', 'd'), { maxLength: 25 })
  .map((lines) => lines.map((line) => `${line}\n`).join(''))

test('property: what was removed and kept is the old text, what was added and kept is the new one', () => {
  fc.assert(
    fc.property(text, text, (before, after) => {
      const diff = lineDiff(before, after)
      const old = linesOf(before)
      const fresh = linesOf(after)
      for (const line of diff.hunks.flat()) {
        if (line.oldNo !== undefined) expect(old[line.oldNo - 1]).toBe(line.text)
        if (line.newNo !== undefined) expect(fresh[line.newNo - 1]).toBe(line.text)
      }
      // Lines outside the hunks are the same on both sides, so the lengths must add up.
      expect(old.length - diff.removed).toBe(fresh.length - diff.added)
      const gone = new Set(diff.hunks.flat().flatMap((line) => (line.type === 'del' ? [line.oldNo] : [])))
      const came = new Set(diff.hunks.flat().flatMap((line) => (line.type === 'add' ? [line.newNo] : [])))
      expect(old.filter((_, i) => !gone.has(i + 1))).toEqual(fresh.filter((_, i) => !came.has(i + 1)))
    }),
    { numRuns: 500 },
  )
})

test('property: no shorter script exists (checked against the longest common subsequence)', () => {
  const longest = (a: string[], b: string[]): number => {
    const row = Array.from({ length: b.length + 1 }, () => 0)
    for (const x of a) {
      let diagonal = 0
      for (let j = 1; j <= b.length; j++) {
        const above = row[j] ?? 0
        row[j] = x === b[j - 1] ? diagonal + 1 : Math.max(above, row[j - 1] ?? 0)
        diagonal = above
      }
    }
    return row[b.length] ?? 0
  }
  fc.assert(
    fc.property(text, text, (before, after) => {
      const [old, fresh] = [linesOf(before), linesOf(after)]
      const common = longest(old, fresh)
      expect(lineDiff(before, after)).toMatchObject({
        added: fresh.length - common,
        removed: old.length - common,
      })
    }),
  )
})
