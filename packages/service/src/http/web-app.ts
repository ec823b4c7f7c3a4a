/** The built web app: its files, and `index.html` for every address that the page itself routes. */
import { readFile, stat } from 'node:fs/promises'
import { join, sep } from 'node:path'
import { SandlotError } from '@sandlot/shared/base/errors'
import { Hono } from 'hono'
import { parseAccept } from 'hono/utils/accept'
import { getMimeType } from 'hono/utils/mime'
import type { AppEnv, Ctx } from './context.ts'

/** File names under `assets/` carry a hash of their content. */
const FOR_EVER = 'public, max-age=31536000, immutable'

/** The build puts a smaller copy beside each file of text, best first. */
const ENCODINGS = [
  { name: 'br', ending: '.br' },
  { name: 'gzip', ending: '.gz' },
] as const

/** Addresses that other programs ask for, and names of files: never the page's own. */
const NEVER_THE_PAGE = /^\/(?:\.well-known|mcp|scim|v1)(?:\/|$)|\.[^/]*$/

export function webApp(folder: string): Hono<AppEnv> {
  return new Hono<AppEnv>()
    .get('/assets/*', async (c) => {
      const found = await answerFile(c, fileBelow(folder, c.req.path), FOR_EVER)
      if (found === undefined) throw new SandlotError('not_found', 'There is no such file.')
      return found
    })
    .get('*', async (c) => {
      const file = await answerFile(c, fileBelow(folder, c.req.path), 'no-cache')
      if (file !== undefined) return file
      if (NEVER_THE_PAGE.test(c.req.path)) throw new SandlotError('not_found', 'There is nothing here.')
      const page = await answerFile(c, join(folder, 'index.html'), 'no-cache')
      if (page !== undefined) return page
      throw new SandlotError(
        'not_ready',
        'The web app is not built. Run “./sandlot up”, or build packages/web.',
      )
    })
}

/** Undefined for what leads out of the folder. No name of the build needs an escape. */
function fileBelow(folder: string, path: string): string | undefined {
  const file = join(folder, path)
  return path.includes('%') || path.includes('\0') || !file.startsWith(folder + sep) ? undefined : file
}

/** Undefined where there is no such file. */
async function answerFile(
  c: Ctx,
  file: string | undefined,
  cacheControl: string,
): Promise<Response | undefined> {
  const plain = file === undefined ? undefined : await fileAt(file)
  if (plain === undefined) return undefined
  const encoded = await Promise.all(
    ENCODINGS.map(async ({ name, ending }) => ({ name, copy: await fileAt(plain.path + ending) })),
  )
  // One that is older belongs to an earlier build.
  const copies = encoded.flatMap(({ name, copy }) =>
    copy === undefined || copy.modifiedAt < plain.modifiedAt ? [] : [{ ...copy, encoding: name }],
  )
  const accepted = parseAccept(c.req.header('accept-encoding') ?? '').filter(({ q }) => q > 0)
  const best = copies.find(({ encoding }) => accepted.some(({ type }) => type === encoding))
  const { path, bytes, modifiedAt } = best ?? plain
  const etag = `"${bytes.toString(36)}-${Math.round(modifiedAt).toString(36)}${best === undefined ? '' : `-${best.encoding}`}"`
  c.header('content-type', getMimeType(plain.path) ?? 'application/octet-stream')
  c.header('cache-control', cacheControl)
  c.header('etag', etag)
  if (copies.length > 0) c.header('vary', 'Accept-Encoding')
  if (isKnown(c.req.header('if-none-match'), etag)) return c.body(null, 304)
  if (best !== undefined) c.header('content-encoding', best.encoding)
  c.header('content-length', `${bytes}`)
  return c.body(await readFile(path))
}

interface WebFile {
  path: string
  bytes: number
  /** Epoch milliseconds. */
  modifiedAt: number
}

async function fileAt(path: string): Promise<WebFile | undefined> {
  try {
    const about = await stat(path)
    return about.isFile() ? { path, bytes: about.size, modifiedAt: about.mtimeMs } : undefined
  } catch {
    return undefined
  }
}

/** A proxy that compresses itself makes a tag weak. */
function isKnown(header: string | undefined, etag: string): boolean {
  const tags = (header ?? '').split(',').map((tag) => tag.trim().replace(/^W\//, ''))
  return tags.includes(etag) || tags.includes('*')
}
