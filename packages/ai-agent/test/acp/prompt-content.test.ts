import { MAX_IMAGE_BYTES, MAX_MESSAGE_IMAGE_BYTES } from '@sandlot/shared/chat/images'
import { expect, test } from 'vitest'
import { promptContent } from '../../src/acp/prompt-content.ts'
import { pngOf } from '../tools/png.ts'

test.each([
  ['no padding', 3_000],
  ['one =', 3_002],
  ['two =', 3_001],
])('images of a message may have the limit together, to the byte: each with %s', (_, size) => {
  // Enough of this padding to fill the rest after the two large ones.
  const sizes = [size, size, size]
  const rest = MAX_MESSAGE_IMAGE_BYTES - 3 * size
  const large = [MAX_IMAGE_BYTES, MAX_IMAGE_BYTES, rest - 2 * MAX_IMAGE_BYTES]
  const blocks = (...all: number[]) =>
    all.map((bytes) => ({
      type: 'image' as const,
      mimeType: 'image/png',
      data: pngOf(bytes).toString('base64'),
    }))
  expect(promptContent(blocks(...large, ...sizes), true).images).toHaveLength(6)
  expect(() => promptContent(blocks(...large, ...sizes.with(0, size + 1)), true)).toThrow(
    'The images of a message may have 15.0 MiB together; these have 15.0 MiB.',
  )
})
