/**
 * Which images may go to a model, wherever they come from: known by their bytes, whole, and
 * bounded.
 */
import { MAX_IMAGE_BYTES, MAX_IMAGES } from '@sandlot/shared/chat/images'
import type { ModelImage } from '../model/model.ts'
import { type ImageInfo, MAX_SIDE, imageInfo } from './image-info.ts'
import { grouped } from './output/truncate-output.ts'

/** The most bytes of all images of one outcome, decoded: it travels as one event. */
const MAX_OUTCOME_BYTES = 10 * 1024 * 1024

/** `too_wide`: whole, but with more pixels a side than a provider takes. */
type ImageProblem = 'too_large' | 'too_wide' | 'not_an_image'

export type CheckedImage =
  | { fits: true; image: ModelImage; info: ImageInfo; bytes: number; words: string }
  | { fits: false; problem: ImageProblem; words: string }

/**
 * By its bytes, not by its declared type: one that a provider refuses would break the session
 * for good. `words` say what it is, with type and size: `image/png, 40 × 30 pixels, 1,234 bytes`;
 * behind them why it does not fit. `called`: the type that its sender names, for what is no image.
 */
export function checkImage(source: Buffer | string, called = 'of unknown type'): CheckedImage {
  const size = typeof source === 'string' ? decodedSize(source) : source.length
  const left = (type: string, problem: ImageProblem, why: string): CheckedImage => {
    return { fits: false, problem, words: `${type}, ${grouped(size)} bytes: ${why}` }
  }
  if (size > MAX_IMAGE_BYTES)
    return left(called, 'too_large', `an image may have at most ${grouped(MAX_IMAGE_BYTES)} bytes`)
  const bytes = typeof source === 'string' ? Buffer.from(source, 'base64') : source
  const info = imageInfo(bytes)
  if (info === undefined)
    return left(called, 'not_an_image', 'an image has to be a whole PNG, JPEG, GIF or WebP')
  const { mimeType, width, height } = info
  const sides = `${mimeType}, ${width} × ${height} pixels`
  if (Math.max(width, height) > MAX_SIDE)
    return left(sides, 'too_wide', `too large to be shown, a side may have at most ${MAX_SIDE} pixels`)
  return {
    fits: true,
    image: { mimeType, data: bytes.toString('base64') },
    info,
    bytes: bytes.length,
    words: `${sides}, ${grouped(bytes.length)} bytes`,
  }
}

/**
 * Checks the images of one outcome one after the other; from the first on that is too much, they
 * are refused.
 */
export function outcomeImages(): (base64: string, called?: string) => CheckedImage {
  let count = 0
  let total = 0
  return (base64, called) => {
    const checked = checkImage(base64, called)
    if (!checked.fits) return checked
    if (count === MAX_IMAGES || total + checked.bytes > MAX_OUTCOME_BYTES) {
      const most = `a result may have at most ${MAX_IMAGES} images of together ${grouped(MAX_OUTCOME_BYTES)} bytes`
      return { fits: false, problem: 'too_large', words: `${checked.words}: ${most}` }
    }
    count += 1
    total += checked.bytes
    return checked
  }
}

/** True if more of a file is worth reading for `checkImage`, by its first 12 bytes. */
export function beginsLikeImage(beginning: Uint8Array): boolean {
  const start = Buffer.from(beginning.subarray(0, 12)).toString('latin1')
  return /^(?:\u0089PNG|\u00ff\u00d8\u00ff|GIF8|RIFF[^]{4}WEBP)/.test(start)
}

function decodedSize(base64: string): number {
  const padding = base64.endsWith('==') ? 2 : base64.endsWith('=') ? 1 : 0
  return Math.max(0, Math.floor((base64.length * 3) / 4) - padding)
}
