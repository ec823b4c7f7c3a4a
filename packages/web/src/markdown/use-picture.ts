/**
 * A picture of the workspace. A drawing (SVG) is read and judged first, because drawing it cannot
 * be stopped; the service gives none to an `<img>`.
 */
import { useEffect, useState } from 'react'
import { isTooComplex } from '../lib/drawing-cost.ts'
import { fileUrl } from '../net/files.ts'

const DRAWING = 'image/svg+xml'

type Picture =
  /** `src`: the address of pixels, or the drawing itself. `read`: the file was looked into. */
  | { state: 'shown'; src: string; read: boolean }
  | { state: 'reading' }
  | { state: 'missing' | 'damaged' | 'complex' }

/** `version`: changes with the file, if known. `onError`: for the `<img>` that has `src`. */
export function usePicture(path: string, version = ''): { picture: Picture; onError: () => void } {
  const address = version === '' ? fileUrl(path) : `${fileUrl(path)}&v=${encodeURIComponent(version)}`
  const [picture, setPicture] = useState<Picture>(() => firstOf(path, address))
  useEffect(() => {
    if (!isDrawingByName(path)) return setPicture(firstOf(path, address))
    return read(address, setPicture)
  }, [path, address])
  const onError = () => {
    if (picture.state === 'shown' && !picture.read) read(address, setPicture)
    else setPicture({ state: 'damaged' })
  }
  return { picture, onError }
}

function isDrawingByName(path: string): boolean {
  return path.toLowerCase().endsWith('.svg')
}

function firstOf(path: string, address: string): Picture {
  return isDrawingByName(path) ? { state: 'reading' } : { state: 'shown', src: address, read: false }
}

/** Reads the file itself, whatever its name says. Answers a function that stops. */
function read(address: string, settle: (picture: Picture) => void): () => void {
  const controller = new AbortController()
  const { signal } = controller
  readDrawing(address, signal).then(
    (picture) => signal.aborted || settle(picture),
    () => signal.aborted || settle({ state: 'damaged' }),
  )
  return () => controller.abort()
}

async function readDrawing(address: string, signal: AbortSignal): Promise<Picture> {
  const response = await fetch(address, { signal })
  if (response.status === 404) return { state: 'missing' }
  const type = response.headers.get('content-type')
  if (!response.ok || type !== DRAWING) {
    await response.body?.cancel()
    // Pixels, in spite of its name.
    if (response.ok && type?.startsWith('image/') === true)
      return { state: 'shown', src: address, read: true }
    return { state: 'damaged' }
  }
  const svg = await response.text()
  return isTooComplex(svg) ? { state: 'complex' } : { state: 'shown', src: drawingUrl(svg), read: true }
}

/** Draws it as a picture: nothing in it runs, and it loads nothing. */
export function drawingUrl(svg: string): string {
  return `data:${DRAWING};charset=utf-8,${encodeURIComponent(svg)}`
}
