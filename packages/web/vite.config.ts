import { readdir, readFile, writeFile } from 'node:fs/promises'
import { join, resolve } from 'node:path'
import { promisify } from 'node:util'
import { brotliCompress, constants, gzip } from 'node:zlib'
import tailwindcss from '@tailwindcss/vite'
import unicodeRanges from '@fontsource-variable/inter/unicode.json' with { type: 'json' }
import react from '@vitejs/plugin-react'
import subsetFont from 'subset-font'
import { defineConfig, type Plugin } from 'vite'

/** Every chat has these two; the other alphabets come when they are needed. */
const FIRST_LETTERS = /\/inter-latin-wght-normal-[^/]*\.woff2$/

/** The address of a running service for `vite` in development. */
const SERVICE = 'http://127.0.0.1:8002'

export default defineConfig({
  plugins: [react(), tailwindcss(), letters(), firstPaint(), compressed()],
  resolve: {
    // `sandlot-source`: packages of this workspace are read as TypeScript, without building them first.
    conditions: ['sandlot-source', 'module', 'browser', 'development|production', 'import', 'default'],
    alias: {
      // The parser of HTML inside Markdown: a quarter of the page, and HTML stays text here.
      'rehype-raw': join(import.meta.dirname, 'src/markdown/without-html.ts'),
      // Serializes a tree as Markdown.
      'mdast-util-to-markdown': join(import.meta.dirname, 'src/markdown/without-serializing.ts'),
    },
  },
  build: {
    outDir: 'dist',
    target: 'es2023',
    sourcemap: false,
    chunkSizeWarningLimit: 1600,
    rolldownOptions: {
      output: {
        codeSplitting: {
          groups: [
            // Files of a few hundred bytes would each cost a request.
            { name: 'page', tags: ['$initial'], priority: 4 },
            { name: 'popups', test: /\/node_modules\/@(?:base-ui|floating-ui)\//, priority: 3 },
            { name: 'conversation', test: /\/transcript\/conversation\.tsx$/, priority: 2 },
            { name: 'common', test: /\/lucide-react\/|\/web\/src\/(?:lib|net|ui)\//, minShareCount: 2 },
          ],
        },
      },
    },
    // pdf.js fetches by address: the page's policy lets it fetch no data in its place.
    assetsInlineLimit: (file) => (file.includes('pdfjs-dist') ? false : undefined),
  },
  server: {
    host: '127.0.0.1',
    proxy: {
      '/api': { target: SERVICE },
      '/ws': { target: SERVICE, ws: true },
    },
  },
})

/** The first letters with the weights and features that styles/ asks for, which are about half of them. */
function letters(): Plugin {
  return {
    name: 'sandlot-letters',
    apply: 'build',
    async generateBundle(_options, bundle) {
      for (const file of Object.values(bundle)) {
        if (file.type !== 'asset' || !FIRST_LETTERS.test(file.fileName)) continue
        file.source = await subsetFont(Buffer.from(file.source), inRanges(unicodeRanges.latin), {
          targetFormat: 'woff2',
          variationAxes: { wght: { min: 400, max: 700 } },
          keepFeatures: [
            'calt',
            'ccmp',
            'cv05',
            'cv11',
            'kern',
            'liga',
            'locl',
            'mark',
            'mkmk',
            'ss03',
            'tnum',
          ],
          noHinting: true,
        })
      }
    },
  }
}

/** All characters of a CSS `unicode-range`. */
function inRanges(ranges: string): string {
  const points = ranges.split(',').flatMap((range) => {
    const [first = '', last = first] = range.replace('U+', '').split('-')
    const start = parseInt(first, 16)
    return Array.from({ length: parseInt(last, 16) - start + 1 }, (_, index) => start + index)
  })
  return String.fromCodePoint(...points)
}

/**
 * Preloads the first letters, which would come after words were drawn with others, and moves the
 * sheet behind the shell, whose paint then does not wait for it. Scripts still do.
 */
function firstPaint(): Plugin {
  return {
    name: 'sandlot-first-paint',
    apply: 'build',
    transformIndexHtml: {
      order: 'post',
      handler: (html, { bundle = {} }) => {
        const letters = Object.keys(bundle).find((name) => FIRST_LETTERS.test(name))
        const [sheet] = /<link rel="stylesheet"[^>]*>/.exec(html) ?? []
        if (letters === undefined || sheet === undefined) throw new Error('No first letters, or no sheet.')
        const attrs = {
          rel: 'preload',
          as: 'font',
          type: 'font/woff2',
          href: `/${letters}`,
          crossorigin: true,
        }
        return {
          html: html.replace(sheet, '').replace('</body>', `${sheet}</body>`),
          tags: [{ tag: 'link', attrs, injectTo: 'head' }],
        }
      },
    },
  }
}

/** Adds compressed copies of each text file, which the service sends to browsers that accept them. */
function compressed(): Plugin {
  let folder = ''
  return {
    name: 'sandlot-compressed',
    apply: 'build',
    configResolved(config) {
      folder = resolve(config.root, config.build.outDir)
    },
    async closeBundle() {
      const names = await readdir(folder, { recursive: true })
      await Promise.all(
        names
          .filter((name) => /\.(?:html|m?js|css|svg)$/.test(name))
          .map((name) => compress(join(folder, name))),
      )
    },
  }
}

async function compress(file: string): Promise<void> {
  const plain = await readFile(file)
  const text = { [constants.BROTLI_PARAM_MODE]: constants.BROTLI_MODE_TEXT }
  const copies = {
    '.br': await promisify(brotliCompress)(plain, { params: text }),
    '.gz': await promisify(gzip)(plain, { level: 9 }),
  }
  for (const [ending, bytes] of Object.entries(copies)) {
    if (bytes.length < plain.length) await writeFile(file + ending, bytes)
  }
}
