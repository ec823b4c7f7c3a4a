/** Which images go to a model: known by their bytes, whole, bounded. */
import { MAX_IMAGE_BYTES, MAX_IMAGES } from '@sandlot/shared/chat/images'
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { beginsLikeImage, checkImage, outcomeImages } from '../../src/tools/image-content.ts'
import { PNG, pngOf } from './png.ts'

test('the limit of one image is in decoded bytes, to the byte, from bytes and from base64', () => {
  for (const bytes of [MAX_IMAGE_BYTES - 1, MAX_IMAGE_BYTES, MAX_IMAGE_BYTES + 1]) {
    const png = pngOf(bytes)
    for (const source of [png, png.toString('base64')])
      expect(checkImage(source).fits).toBe(bytes <= MAX_IMAGE_BYTES)
  }
  expect(checkImage(pngOf(MAX_IMAGE_BYTES + 1), 'image/png')).toEqual({
    fits: false,
    problem: 'too_large',
    words: 'image/png, 5,242,881 bytes: an image may have at most 5,242,880 bytes',
  })
})

test('what it is comes from its bytes; what is none keeps the name that its sender gave it, with its size', () => {
  expect(checkImage(PNG.toString('base64'), 'image/jpeg')).toMatchObject({
    fits: true,
    image: { mimeType: 'image/png', data: PNG.toString('base64') },
    words: `image/png, 1 × 1 pixels, ${PNG.length} bytes`,
  })
  expect(checkImage('aGVsbG8=', 'image/png')).toMatchObject({
    problem: 'not_an_image',
    words: expect.stringMatching(/^image\/png, 5 bytes: /),
  })
})

test('the images of an outcome are bounded in number and together; the others are said with type and size', () => {
  const small = outcomeImages()
  const checked = Array.from({ length: MAX_IMAGES + 1 }, () => small(PNG.toString('base64')))
  expect(checked.map(({ fits }) => fits)).toEqual([...Array<boolean>(MAX_IMAGES).fill(true), false])
  expect(checked.at(-1)?.words).toMatch(/^image\/png, 1 × 1 pixels, \d+ bytes: .*at most 10 images/)
  const large = outcomeImages()
  const most = pngOf(MAX_IMAGE_BYTES).toString('base64')
  expect([most, most, PNG.toString('base64')].map((one) => large(one).fits)).toEqual([true, true, false])
})

test('whatever the bytes: an image that fits begins like one and comes out as it went in', () => {
  fc.assert(
    fc.property(fc.uint8Array({ maxLength: 80 }), fc.boolean(), (noise, inside) => {
      const bytes = inside
        ? Buffer.concat([PNG.subarray(0, 33), noise, PNG.subarray(-12)])
        : Buffer.from(noise)
      const checked = checkImage(bytes.toString('base64'))
      if (!checked.fits) return
      expect(beginsLikeImage(bytes)).toBe(true)
      expect(checked.image.data).toBe(bytes.toString('base64'))
    }),
  )
  expect(beginsLikeImage(Buffer.from('RIFF\n\n\n\nWEBP', 'latin1'))).toBe(true)
  expect(beginsLikeImage(Buffer.from('RIFF....WAVE', 'latin1'))).toBe(false)
})
