import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { dayOf, instantOf, isOver } from '../src/dates.ts'

const text = (at: number | undefined): string | undefined =>
  at === undefined ? undefined : new Date(at).toISOString()

describe('a day', () => {
  test('is one that the calendar has', () => {
    expect(text(dayOf('2028-02-29'))).toBe('2028-02-29T00:00:00.000Z')
    for (const wrong of [
      '2027-02-29',
      '2027-02-30',
      '2027-13-01',
      '2027-04-31',
      '2027-1-1',
      '27-01-01',
      'soon',
      '',
    ])
      expect(dayOf(wrong), wrong).toBeUndefined()
  })

  test('every day of the calendar is read, and nothing else of its shape', () => {
    const digits = (size: number) =>
      fc.integer({ min: 0, max: 10 ** size - 1 }).map((n) => String(n).padStart(size, '0'))
    fc.assert(
      fc.property(digits(4), digits(2), digits(2), (year, month, day) => {
        const last = new Date(Date.UTC(2000, Number(month), 0))
        last.setUTCFullYear(Number(year), Number(month), 0)
        const real =
          Number(month) >= 1 && Number(month) <= 12 && Number(day) >= 1 && Number(day) <= last.getUTCDate()
        expect(dayOf(`${year}-${month}-${day}`) !== undefined).toBe(real)
      }),
    )
  })

  test('is over only when it is over everywhere', () => {
    const day = dayOf('2027-03-01') ?? 0
    expect(isOver(day, Date.parse('2027-03-02T11:59:59Z'))).toBe(false)
    expect(isOver(day, Date.parse('2027-03-02T12:00:00Z'))).toBe(true)
  })
})

describe('a time in ISO 8601', () => {
  test.each([
    ['2027-03-01', '2027-03-01T00:00:00.000Z'],
    ['2027-03-01T09:30', '2027-03-01T09:30:00.000Z'],
    ['2027-03-01T09:30:15', '2027-03-01T09:30:15.000Z'],
    ['2027-03-01T09:30:15Z', '2027-03-01T09:30:15.000Z'],
    ['2027-03-01t09:30:15z', '2027-03-01T09:30:15.000Z'],
    ['2027-03-01T09:30:15.123456+01:00', '2027-03-01T08:30:15.123Z'],
    ['2027-03-01T09:30:15,5-0530', '2027-03-01T15:00:15.500Z'],
    ['2027-03-01T09:30+02', '2027-03-01T07:30:00.000Z'],
  ])('%s', (written, meant) => expect(text(instantOf(written))).toBe(meant))

  test.each([
    '2027-02-30T09:00:00Z',
    '2027-03-01T25:00:00Z',
    '2027-03-01T09:61:00Z',
    '2027-03-01 09:00:00',
    '1 March 2027',
    'tomorrow',
    '',
  ])('is not %j', (written) => expect(instantOf(written)).toBeUndefined())
})
