import { expect, test } from 'vitest'
import { table } from '../../src/commands/sandbox.ts'
import { confirmed } from '../../src/programs/sandbox-admin.ts'

test('every workspace is one line, in columns', () => {
  expect(
    table([
      { volume: 'sbx-d-aaaaaaaa', slot: 'aaaaaaaa', owner: 'nobody' },
      {
        volume: 'sbx-d-bbbbbbbb',
        slot: 'bbbbbbbb',
        owner: 'claimed',
        userId: 'ann',
        container: { id: 'c', name: 'sbx-d-bbbbbbbb-x-1', state: 'paused' },
      },
    ]),
  ).toEqual([
    'SLOT      OWNER   STATE   CONTAINER           WORKSPACE',
    'aaaaaaaa  (none)  absent  -                   sbx-d-aaaaaaaa',
    'bbbbbbbb  ann     paused  sbx-d-bbbbbbbb-x-1  sbx-d-bbbbbbbb',
  ])
  expect(table([])).toEqual(['There are no sandboxes.'])
})

test('files are removed only after confirmation', async () => {
  expect(await confirmed('Remove?', ['--purge', '--yes'])).toBe(true)
  // No terminal here.
  await expect(confirmed('Remove?', ['--purge'])).rejects.toThrow(/no terminal to ask at/)
})
