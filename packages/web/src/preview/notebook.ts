/** A Jupyter notebook (`.ipynb`, format 4) as what is shown of it. */
import { z } from 'zod'

/** Text in a notebook is one string, or its lines. */
const text = z.union([z.string(), z.array(z.string()).transform((lines) => lines.join(''))])
const bundle = z.record(z.string(), z.unknown()).catch({})

const output = z.discriminatedUnion('output_type', [
  z.object({ output_type: z.literal('stream'), text }),
  z.object({ output_type: z.enum(['display_data', 'execute_result']), data: bundle }),
  z.object({
    output_type: z.literal('error'),
    ename: z.string().catch(''),
    evalue: z.string().catch(''),
    traceback: z.array(z.string()).catch([]),
  }),
])

const notebook = z.object({
  nbformat: z.number(),
  metadata: z.object({ language_info: z.object({ name: z.string() }).optional() }).catch({}),
  cells: z.array(
    z.object({
      cell_type: z.enum(['code', 'markdown', 'raw']),
      source: text.catch(''),
      execution_count: z.number().nullish().catch(null),
      outputs: z.array(z.unknown()).catch([]),
    }),
  ),
})

export type Output =
  | { type: 'ansi'; text: string; failed: boolean }
  | { type: 'image'; src: string }
  | { type: 'html' | 'markdown' | 'math' | 'drawing'; text: string }
  | { type: 'unknown'; what: string }

export type Cell =
  | { type: 'markdown'; text: string }
  | { type: 'raw'; text: string }
  | { type: 'code'; text: string; count: number | null; outputs: Output[] }

export interface Notebook {
  language: string
  cells: Cell[]
}

/** Throws `Error` with a sentence for the reader. */
export function readNotebook(json: unknown): Notebook {
  const parsed = notebook.safeParse(json)
  if (!parsed.success) throw new Error('This file is no notebook of format 4, so it is shown as text.')
  const { cells, metadata } = parsed.data
  return {
    language: metadata.language_info?.name ?? 'python',
    cells: cells.map(({ cell_type: type, source, execution_count: count, outputs }): Cell =>
      type === 'code'
        ? { type, text: source, count: count ?? null, outputs: outputs.map(outputOf) }
        : { type, text: source },
    ),
  }
}

const IMAGES = ['image/png', 'image/jpeg', 'image/gif', 'image/webp'] as const

/** The richest form that is shown without running anything. */
function outputOf(raw: unknown): Output {
  const one = output.safeParse(raw).data
  if (one === undefined) return { type: 'unknown', what: 'an output of an unknown kind' }
  if (one.output_type === 'stream') return { type: 'ansi', text: one.text, failed: false }
  if (one.output_type === 'error')
    return {
      type: 'ansi',
      text: one.traceback.length > 0 ? one.traceback.join('\n') : `${one.ename}: ${one.evalue}`,
      failed: true,
    }
  const has = (type: string) => text.safeParse(one.data[type]).data
  for (const type of IMAGES) {
    const base64 = has(type)?.replaceAll(/\s/g, '')
    if (base64 !== undefined && /^[A-Za-z0-9+/]+=*$/.test(base64))
      return { type: 'image', src: `data:${type};base64,${base64}` }
  }
  const svg = has('image/svg+xml')
  if (svg !== undefined) return { type: 'drawing', text: svg }
  const html = has('text/html')
  if (html !== undefined) return { type: 'html', text: html }
  const markdown = has('text/markdown')
  if (markdown !== undefined) return { type: 'markdown', text: markdown }
  const latex = has('text/latex')
  if (latex !== undefined) return { type: 'math', text: latex }
  const plain = has('text/plain')
  if (plain !== undefined) return { type: 'ansi', text: plain, failed: false }
  return { type: 'unknown', what: Object.keys(one.data).join(', ') || 'an empty output' }
}
