/**
 * Attachments that wait in the composers of this tab. Images are uploaded to the service, other
 * files to the workspace, at once, so that sending the message is immediate; uploaded ones are
 * stored with the draft, across a reload. The state lives outside of a session's page, so that
 * navigating away stops nothing.
 */
import { messageOf } from '@sandlot/shared/base/errors'
import { formatBytes } from '@sandlot/shared/base/format-bytes'
import {
  imageId,
  imageType,
  imageTypeOf,
  MAX_IMAGE_BYTES,
  MAX_IMAGES,
  MAX_MESSAGE_IMAGE_BYTES,
  type UploadedImage,
} from '@sandlot/shared/chat/images'
import { z } from 'zod'
import type { KeyValue } from '../lib/storage.ts'
import { waitingImageUrl } from '../net/images.ts'

const persistedImage = z.object({ id: imageId, name: z.string(), bytes: z.number(), mimeType: imageType })
const persistedFile = z.object({ path: z.string(), name: z.string(), bytes: z.number() })
type PersistedImage = z.infer<typeof persistedImage>
type PersistedFile = z.infer<typeof persistedFile>

/** `preview`: null for what is no image. */
export type Attachment = { key: string; name: string; bytes: number; preview: string | null } & (
  | { state: 'sending'; part: number }
  | { state: 'there'; id: string; mimeType: PersistedImage['mimeType'] }
  /** A file of any kind, in the workspace. */
  | { state: 'there'; path: string }
  | { state: 'failed'; problem: string; again: (() => void) | null }
)

/** Why the chat takes no images, and no other files; null: it takes them. */
export interface Refusals {
  images: string | null
  files: string | null
}

/** Contents of one composer. */
export interface Attached {
  readonly items: readonly Attachment[]
  /** Why something was not taken. */
  readonly problem: string | null
}

interface AttachmentParts {
  /** Storage of uploaded attachments, for this session or (null) for the new chat. */
  storageOf(sessionId: string | null): KeyValue
  /** `onProgress` gets the part that is sent, 0 to 1. Rejects with what can be shown. */
  upload(
    file: Blob,
    mimeType: string,
    options: { onProgress: (part: number) => void; signal: AbortSignal },
  ): Promise<UploadedImage>
  /** The service need not keep it any more. Does not reject. */
  discard(id: string): Promise<void>
  /** Into the workspace, under a name that was free there: the path. As `upload`. */
  uploadFile(
    file: File,
    options: { onProgress: (part: number) => void; signal: AbortSignal },
  ): Promise<string>
  /** Out of the workspace again. Does not reject. */
  removeFile(path: string): Promise<void>
}

/** The owner of an image. The new chat's becomes its session's, and uploads under way follow. */
interface Place {
  sessionId: string | null
}

const keyOf = (sessionId: string | null) => `sandlot.images.${sessionId ?? 'new'}`

export class Attachments {
  readonly #parts: AttachmentParts
  readonly #attached = new Map<string, Attached>()
  readonly #uploads = new Map<string, AbortController>()
  readonly #readers = new Set<() => void>()
  #newChat: Place = { sessionId: null }
  #stopped = false

  constructor(parts: AttachmentParts) {
    this.#parts = parts
  }

  start(): void {
    this.#stopped = false
  }

  /** After signing out: pending uploads are not sent. */
  stop(): void {
    this.#stopped = true
    for (const { items } of this.#attached.values()) items.forEach((item) => this.#release(item))
  }

  /** `changed` is called after every change. Answers how to stop that. */
  readonly subscribe = (changed: () => void): (() => void) => {
    this.#readers.add(changed)
    return () => this.#readers.delete(changed)
  }

  /**
   * Contents of this session's composer (null: of the new chat); the same object until it changes.
   */
  of(sessionId: string | null): Attached {
    const key = keyOf(sessionId)
    const known = this.#attached.get(key)
    if (known !== undefined) return known
    const stored = { items: load(this.#parts.storageOf(sessionId), key), problem: null }
    this.#attached.set(key, stored)
    return stored
  }

  /**
   * Resolves with the keys of those that were taken, when all were looked at; they may still be on
   * their way.
   */
  async add(sessionId: string | null, files: readonly File[], refusals: Refusals): Promise<string[]> {
    const place = sessionId === null ? this.#newChat : { sessionId }
    this.#change(place, { problem: null })
    const keys: string[] = []
    for (const file of files) {
      const key = await this.#take(place, file, refusals)
      if (key !== undefined) keys.push(key)
    }
    return keys
  }

  /** Out of the composer, and off the service. */
  remove(sessionId: string | null, key: string): void {
    const { items } = this.of(sessionId)
    for (const item of items) {
      if (item.key !== key) continue
      this.#release(item)
      if (item.state === 'there')
        void ('id' in item ? this.#parts.discard(item.id) : this.#parts.removeFile(item.path))
    }
    this.#change({ sessionId }, { items: items.filter((item) => item.key !== key), problem: null })
  }

  /** Their message is sent: forget them. */
  clear(sessionId: string | null): void {
    this.of(sessionId).items.forEach((item) => this.#release(item))
    this.#change({ sessionId }, { items: [], problem: null })
  }

  /** Its picture could not be shown: it does not wait on the service any more. */
  lost(sessionId: string | null, key: string): void {
    const item = this.of(sessionId).items.find((other) => other.key === key)
    if (item?.state !== 'there' || 'path' in item) return
    const problem = 'No longer available. Attach it again.'
    this.#replace({ sessionId }, { ...item, state: 'failed', problem, again: null })
  }

  /**
   * Attachments made while a new chat got its session belong to that session, also uploads under
   * way.
   */
  started(sessionId: string): void {
    const { items, problem } = this.of(null)
    const place = this.#newChat
    this.#newChat = { sessionId: null }
    this.#change({ sessionId: null }, { items: [], problem: null })
    place.sessionId = sessionId
    this.#change(place, { items: [...this.of(sessionId).items, ...items], problem })
  }

  async #take(place: Place, file: File, refusals: Refusals): Promise<string | undefined> {
    const { name, size: bytes } = file
    const type = await typeOf(file)
    if (this.#stopped) return undefined
    const why =
      type === 'unreadable'
        ? `Can’t read “${name}”. Attach files, not folders.`
        : type === undefined
          ? refusals.files
          : (refusals.images ?? tooMuch(file, this.of(place.sessionId).items))
    if (why !== null || type === 'unreadable') {
      this.#change(place, { problem: why })
      return undefined
    }
    const preview = type === undefined ? null : URL.createObjectURL(file)
    const base = { key: crypto.randomUUID(), name, bytes, preview }
    const { items } = this.of(place.sessionId)
    this.#change(place, { items: [...items, { ...base, state: 'sending', part: 0 }] })
    this.#send(place, base, file, type)
    return base.key
  }

  /** `type`: of an image. */
  #send(
    place: Place,
    base: Pick<Attachment, 'key' | 'name' | 'bytes' | 'preview'>,
    file: File,
    type: string | undefined,
  ) {
    const stop = new AbortController()
    this.#uploads.set(base.key, stop)
    this.#replace(place, { ...base, state: 'sending', part: 0 })
    const onProgress = (part: number) => this.#replace(place, { ...base, state: 'sending', part })
    const options = { onProgress, signal: stop.signal }
    const sent =
      type === undefined
        ? this.#parts.uploadFile(file, options).then((path) => ({ path }))
        : this.#parts.upload(file, type, options).then(({ id, mimeType }) => ({ id, mimeType }))
    sent.then(
      (where) => {
        this.#uploads.delete(base.key)
        this.#replace(place, { ...base, state: 'there', ...where })
      },
      (error: unknown) => {
        this.#uploads.delete(base.key)
        if (stop.signal.aborted) return
        const again = () => this.#send(place, base, file, type)
        this.#replace(place, { ...base, state: 'failed', problem: messageOf(error), again })
      },
    )
  }

  #replace(place: Place, item: Attachment): void {
    const { items } = this.of(place.sessionId)
    this.#change(place, { items: items.map((other) => (other.key === item.key ? item : other)) })
  }

  #release(item: Attachment): void {
    this.#uploads.get(item.key)?.abort()
    if (item.preview?.startsWith('blob:') === true) URL.revokeObjectURL(item.preview)
  }

  #change({ sessionId }: Place, change: Partial<Attached>): void {
    const before = this.of(sessionId)
    const next = { ...before, ...change }
    this.#attached.set(keyOf(sessionId), next)
    if (next.items !== before.items) keep(this.#parts.storageOf(sessionId), keyOf(sessionId), next.items)
    for (const changed of this.#readers) changed()
  }
}

/** By its bytes. A folder that was dropped has none, and its name says nothing about that. */
async function typeOf(file: File): Promise<ReturnType<typeof imageTypeOf> | 'unreadable'> {
  try {
    return imageTypeOf(new Uint8Array(await file.slice(0, 12).arrayBuffer()))
  } catch (error) {
    console.warn(`Couldn’t read “${file.name}”.`, error)
    return 'unreadable'
  }
}

/** Why this file is one too many, in words; null when it fits. */
function tooMuch(file: { name: string; size: number }, all: readonly Attachment[]): string | null {
  const items = all.filter(({ preview }) => preview !== null)
  if (file.size > MAX_IMAGE_BYTES) return `“${file.name}” is larger than ${formatBytes(MAX_IMAGE_BYTES)}.`
  if (items.length >= MAX_IMAGES) return `A message can have up to ${MAX_IMAGES} images.`
  const together = items.reduce((sum, { bytes }) => sum + bytes, file.size)
  if (together > MAX_MESSAGE_IMAGE_BYTES)
    return `Images in a message can total ${formatBytes(MAX_MESSAGE_IMAGE_BYTES)}.`
  return null
}

/**
 * Why a message with these cannot be sent now, in words; null when it can. `refusal`: why the chat
 * takes no images.
 */
export function blockedBy(items: readonly Attachment[], refusal: string | null): string | null {
  if (refusal !== null && items.some(({ preview }) => preview !== null)) return refusal
  const waiting = items.filter(({ state }) => state !== 'there')
  if (waiting.length === 0) return null
  const what = waiting.every(({ preview }) => preview !== null) ? 'images' : 'files'
  return `Wait for the ${what}, or remove those that failed`
}

function load(storage: KeyValue, key: string): Attachment[] {
  const text = storage.get(key)
  if (text === null) return []
  try {
    return z
      .array(z.union([persistedImage, persistedFile]))
      .parse(JSON.parse(text))
      .map((one) =>
        'id' in one
          ? { ...one, key: one.id, preview: waitingImageUrl(one.id), state: 'there' }
          : { ...one, key: one.path, preview: null, state: 'there' },
      )
  } catch (error) {
    console.warn('Attached images of an older version were dropped.', error)
    return []
  }
}

function keep(storage: KeyValue, key: string, items: readonly Attachment[]): void {
  const there = items.flatMap((item): (PersistedImage | PersistedFile)[] => {
    if (item.state !== 'there') return []
    const { name, bytes } = item
    return 'id' in item
      ? [{ id: item.id, name, bytes, mimeType: item.mimeType }]
      : [{ path: item.path, name, bytes }]
  })
  if (there.length === 0) storage.remove(key)
  else storage.set(key, JSON.stringify(there))
}
