/** Images of Docker as an OCI layout, whose digests hold on every node and in every registry. */
import { createHash } from 'node:crypto'
import { createReadStream } from 'node:fs'
import { mkdir, open, readFile, realpath, rename, stat, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { z } from 'zod'

/** `manifest.json` of `docker save`. */
const saved = z.array(
  z.object({ Config: z.string(), RepoTags: z.array(z.string()).nullable(), Layers: z.array(z.string()) }),
)

interface Descriptor {
  mediaType: string
  digest: string
  size: number
}

const TYPE = 'application/vnd.oci.image'
/** Beginnings of compressed layers, and what the type of such a layer ends with. */
const COMPRESSIONS = [
  { magic: '1f8b', ending: '+gzip' },
  { magic: '28b52ffd', ending: '+zstd' },
]

/**
 * Turns `from`, an unpacked `docker save`, into `oci-layout`, `index.json` and `blobs` in `to`, on
 * the same disk; `from` is used up. Returns the reference of each tag with its digest. The index
 * names each image by its tag and by its digest, so that containerd finds it by either.
 */
export async function toOciLayout(from: string, to: string): Promise<Map<string, string>> {
  await mkdir(join(to, 'blobs', 'sha256'), { recursive: true })
  const images = saved.parse(JSON.parse(await readFile(join(from, 'manifest.json'), 'utf8')))
  // Layers of several images are one file, to which others are links.
  const files = new Map<string, string>()
  for (const name of images.flatMap(({ Config, Layers }) => [Config, ...Layers]))
    files.set(name, await realpath(join(from, name)))
  const blobs = new Map<string, Descriptor>()
  const take = async (name: string, typeOf: (path: string) => Promise<string>): Promise<Descriptor> => {
    const path = files.get(name) ?? ''
    const known = blobs.get(path)
    if (known !== undefined) return known
    const { size } = await stat(path)
    const blob = { mediaType: await typeOf(path), digest: await digestOf(path), size }
    await rename(path, blobPath(to, blob.digest))
    blobs.set(path, blob)
    return blob
  }
  const references = new Map<string, string>()
  const manifests: (Descriptor & { annotations: Record<string, string> })[] = []
  for (const { Config, RepoTags, Layers } of images) {
    const config = await take(Config, async () => `${TYPE}.config.v1+json`)
    const layers: Descriptor[] = []
    for (const layer of Layers) layers.push(await take(layer, layerType))
    const mediaType = `${TYPE}.manifest.v1+json`
    const text = JSON.stringify({ schemaVersion: 2, mediaType, config, layers })
    const digest = `sha256:${createHash('sha256').update(text).digest('hex')}`
    await writeFile(blobPath(to, digest), text)
    for (const tag of RepoTags ?? []) {
      const reference = `${tag.replace(/:[^/:]+$/, '')}@${digest}`
      references.set(tag, reference)
      for (const name of [tag, reference])
        manifests.push({
          mediaType,
          digest,
          size: Buffer.byteLength(text),
          annotations: { 'io.containerd.image.name': wholeName(name) },
        })
    }
  }
  await writeFile(join(to, 'oci-layout'), JSON.stringify({ imageLayoutVersion: '1.0.0' }))
  const index = { schemaVersion: 2, mediaType: `${TYPE}.index.v1+json`, manifests }
  await writeFile(join(to, 'index.json'), JSON.stringify(index))
  return references
}

function blobPath(folder: string, digest: string): string {
  return join(folder, 'blobs', digest.replace(':', '/'))
}

/** A name without a registry's host is one of Docker's. */
function wholeName(name: string): string {
  const [first = '', ...rest] = name.split('/')
  const isHost = rest.length > 0 && (/[.:]/.test(first) || first === 'localhost')
  if (isHost) return name
  return rest.length === 0 ? `docker.io/library/${name}` : `docker.io/${name}`
}

async function digestOf(path: string): Promise<string> {
  const hash = createHash('sha256')
  for await (const chunk of createReadStream(path)) hash.update(chunk as Buffer)
  return `sha256:${hash.digest('hex')}`
}

async function layerType(path: string): Promise<string> {
  const file = await open(path)
  try {
    const { buffer, bytesRead } = await file.read(Buffer.alloc(4), 0, 4, 0)
    const begin = buffer.subarray(0, bytesRead).toString('hex')
    const ending = COMPRESSIONS.find(({ magic }) => begin.startsWith(magic))?.ending ?? ''
    return `${TYPE}.layer.v1.tar${ending}`
  } finally {
    await file.close()
  }
}
