/**
 * Images that wait in the composer. Each is sent to the service at once, so that sending the message is immediate; those
 * that have arrived are kept with the draft, across a reload.
 */
import { messageOf } from '@sandlot/shared/errors'
import {
  imageId,
  imageType,
  imageTypeOf,
  MAX_IMAGE_BYTES,
  MAX_IMAGES,
  MAX_MESSAGE_IMAGE_BYTES,
} from '@sandlot/shared/images'
import { useEffect, useRef, useState } from 'react'
import { z } from 'zod'
import { browserStorage } from '../lib/storage.ts'
import { uploadImage, waitingImageUrl } from '../net/images.ts'

const keptImage = z.object({ id: imageId, name: z.string(), bytes: z.number(), mimeType: imageType })
type KeptImage = z.infer<typeof keptImage>

export type Attachment = { key: string; name: string; bytes: number; preview: string } & (
  | { state: 'sending'; part: number }
  | { state: 'there'; id: string; mimeType: KeptImage['mimeType'] }
  | { state: 'failed'; problem: string; again: (() => void) | null }
)

export interface Attachments {
  items: readonly Attachment[]
  /** Why something was not taken. */
  problem: string | null
  add: (files: readonly File[]) => void
  remove: (key: string) => void
  /** They are sent: forget them. */
  clear: () => void
  /** Its picture could not be shown: it does not wait on the service any more. */
  lost: (key: string) => void
}

const keyOf = (sessionId: string | null) => `sandlot.images.${sessionId ?? 'new'}`

/** `refusal`: why this chat takes no images; null: it takes them. */
export function useAttachments(sessionId: string | null, refusal: string | null): Attachments {
  const [items, setItems] = useState<readonly Attachment[]>(() => load(sessionId))
  const [problem, setProblem] = useState<string | null>(null)
  const [left] = useState(() => new Map<string, AbortController>())
  // What is added while files are still looked at counts too.
  const latest = useRef(items)

  const change = (next: (items: readonly Attachment[]) => readonly Attachment[]) => {
    latest.current = next(latest.current)
    setItems(latest.current)
    keep(sessionId, latest.current)
  }
  const replace = (item: Attachment) =>
    change((known) => known.map((other) => (other.key === item.key ? item : other)))
  useEffect(() => () => left.forEach((stop) => stop.abort()), [left])

  const send = (base: Pick<Attachment, 'key' | 'name' | 'bytes' | 'preview'>, file: File, type: string) => {
    const stop = new AbortController()
    left.set(base.key, stop)
    replace({ ...base, state: 'sending', part: 0 })
    const onProgress = (part: number) => replace({ ...base, state: 'sending', part })
    uploadImage(file, type, { onProgress, signal: stop.signal }).then(
      ({ id, mimeType }) => replace({ ...base, state: 'there', id, mimeType }),
      (error: unknown) => {
        if (stop.signal.aborted) return
        replace({ ...base, state: 'failed', problem: messageOf(error), again: () => send(base, file, type) })
      },
    )
  }
  const take = async (file: File): Promise<void> => {
    const type = imageTypeOf(new Uint8Array(await file.slice(0, 12).arrayBuffer()))
    const why =
      type === undefined ? `“${file.name}” is not a PNG, JPEG, GIF or WebP.` : tooMuch(file, latest.current)
    if (type === undefined || why !== null) return setProblem(why)
    const { name, size: bytes } = file
    const base = { key: crypto.randomUUID(), name, bytes, preview: URL.createObjectURL(file) }
    change((known) => [...known, { ...base, state: 'sending', part: 0 }])
    send(base, file, type)
  }
  const forget = (item: Attachment) => {
    left.get(item.key)?.abort()
    if (item.preview.startsWith('blob:')) URL.revokeObjectURL(item.preview)
  }

  return {
    items,
    problem,
    add(files) {
      setProblem(refusal)
      if (refusal !== null) return
      void (async () => {
        for (const file of files) await take(file)
      })()
    },
    remove(key) {
      setProblem(null)
      latest.current.filter((item) => item.key === key).forEach(forget)
      change((known) => known.filter((item) => item.key !== key))
    },
    clear() {
      setProblem(null)
      latest.current.forEach(forget)
      change(() => [])
    },
    lost(key) {
      const item = latest.current.find((other) => other.key === key)
      if (item?.state === 'there')
        replace({ ...item, state: 'failed', problem: 'Not kept any more. Attach it again.', again: null })
    },
  }
}

/** Why this file is one too many, in words; null when it fits. */
export function tooMuch(
  file: { name: string; size: number },
  items: readonly { bytes: number }[],
): string | null {
  const mib = (bytes: number) => `${bytes / 1024 / 1024} MiB`
  if (file.size > MAX_IMAGE_BYTES) return `“${file.name}” is larger than ${mib(MAX_IMAGE_BYTES)}.`
  if (items.length >= MAX_IMAGES) return `A message takes ${MAX_IMAGES} images.`
  const all = items.reduce((sum, { bytes }) => sum + bytes, file.size)
  if (all > MAX_MESSAGE_IMAGE_BYTES)
    return `The images of a message have at most ${mib(MAX_MESSAGE_IMAGE_BYTES)} together.`
  return null
}

function load(sessionId: string | null): Attachment[] {
  const text = browserStorage('local').get(keyOf(sessionId))
  if (text === null) return []
  try {
    return z
      .array(keptImage)
      .parse(JSON.parse(text))
      .map((image) => ({ ...image, key: image.id, preview: waitingImageUrl(image.id), state: 'there' }))
  } catch (error) {
    console.warn('Attached images of an older version were dropped.', error)
    return []
  }
}

function keep(sessionId: string | null, items: readonly Attachment[]): void {
  const there = items.flatMap((item): KeptImage[] => {
    if (item.state !== 'there') return []
    const { id, name, bytes, mimeType } = item
    return [{ id, name, bytes, mimeType }]
  })
  if (there.length === 0) browserStorage('local').remove(keyOf(sessionId))
  else browserStorage('local').set(keyOf(sessionId), JSON.stringify(there))
}

/** What was attached while a new chat got its session belongs to that session. */
export function moveAttachments(from: string | null, to: string | null): void {
  const storage = browserStorage('local')
  const kept = storage.get(keyOf(from))
  if (kept === null) return
  storage.set(keyOf(to), kept)
  storage.remove(keyOf(from))
}
