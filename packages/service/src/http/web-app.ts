/** The built web app: its files, and `index.html` for every address that the page itself routes. */
import { existsSync } from 'node:fs'
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { serveStatic } from '@hono/node-server/serve-static'
import { SandlotError } from '@sandlot/shared/errors'
import { Hono } from 'hono'
import type { MiddlewareHandler } from 'hono'
import type { AppEnv } from './context.ts'

/** File names under `assets/` carry a hash of their content. */
const FOR_EVER = 'public, max-age=31536000, immutable'

export function webApp(folder: string): Hono<AppEnv> {
  const index = join(folder, 'index.html')
  const files = existsSync(folder) ? filesOf(folder) : nothing()

  return new Hono<AppEnv>()
    .get('/assets/*', files, () => {
      throw new SandlotError('not_found', 'There is no such file.')
    })
    .get('*', files, async (c) => {
      if (!existsSync(index)) {
        throw new SandlotError(
          'not_ready',
          'The web app is not built. Run “./sandlot up”, or build packages/web.',
        )
      }
      return c.html(await readFile(index, 'utf8'), 200, { 'cache-control': 'no-cache' })
    })
}

function filesOf(folder: string): MiddlewareHandler<AppEnv> {
  return serveStatic<AppEnv>({
    root: folder,
    onFound: (path, c) => {
      const hashed = path.startsWith(join(folder, 'assets/'))
      c.header('cache-control', hashed ? FOR_EVER : 'no-cache')
    },
  })
}

/** Not built: every address says so. */
function nothing(): MiddlewareHandler<AppEnv> {
  return (_c, next) => next()
}
