/** Parts of a history in a form that every wire may send. */
import type { ModelImage } from '../model.ts'

/** A name that the model made up may be one that providers refuse in a history. */
export function legalName(name: string): string {
  const legal = name.replaceAll(/[^a-zA-Z0-9_-]/g, '_').slice(0, 64)
  return legal === '' ? 'unnamed' : legal
}

/** Stands for an image where the model takes none. */
export function imageNote({ mimeType, data }: ModelImage): string {
  const bytes = Math.floor((data.replace(/=+$/, '').length * 3) / 4)
  return `[An image (${mimeType}, ${bytes} bytes) was left out: this model takes no images.]`
}
