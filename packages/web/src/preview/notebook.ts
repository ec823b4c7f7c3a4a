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
      attachments: z.record(z.string(), bundle).catch({}),
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
  /** `pictures`: attached ones, by their addresses in the text. */
  | { type: 'markdown'; text: string; pictures: ReadonlyMap<string, string> }
  | { type: 'raw'; text: string }
  | { type: 'code'; text: string; count: number | null; outputs: Output[] }

export interface Notebook {
  language: string
  cells: Cell[]
}

/** Throws `Error` with a sentence for the reader. */
export function readNotebook(json: unknown): Notebook {
  const parsed = notebook.safeParse(json)
  if (!parsed.success) throw new Error('This isn’t a version 4 notebook, so it’s shown as text.')
  const { cells, metadata } = parsed.data
  return {
    language: metadata.language_info?.name ?? 'python',
    cells: cells.map(({ cell_type: type, source, execution_count: count, outputs, attachments }): Cell => {
      if (type === 'code')
        return { type, text: source, count: count ?? null, outputs: outputs.flatMap(shownOf) }
      return type === 'raw' ? { type, text: source } : withPictures(source, attachments)
    }),
  }
}

/** Relative addresses, because the text keeps only those and addresses of the web. */
const ATTACHED = 'attachment/'

function withPictures(source: string, attachments: Record<string, Record<string, unknown>>): Cell {
  const pictures = new Map(
    Object.entries(attachments).flatMap(([name, data]) => {
      const src = imageIn(data)
      return src === undefined ? [] : [[ATTACHED + encodeURI(name), src] as const]
    }),
  )
  return { type: 'markdown', text: source.replaceAll(/(?<=\]\(\s*<?)attachment:/g, ATTACHED), pictures }
}

/** Elements that show something only where scripts run, or other pages are loaded. */
const ACTIVE = /<(script|iframe|frame|object|embed|canvas)\b[^>]*>(?:[^]*?<\/\1\s*>)?/gi

/** An output, and a word about what is left out of it. */
function shownOf(raw: unknown): Output[] {
  const one = outputOf(raw)
  if (one.type !== 'html') return [one]
  const still = one.text.replaceAll(ACTIVE, '')
  if (still === one.text) return [one]
  const left: Output = { type: 'unknown', what: 'a part of the output that needs scripts or other pages' }
  const isEmpty = still.replaceAll(/<style\b[^]*?<\/style\s*>|<(?!img|svg)[^>]*>|\s/gi, '') === ''
  return isEmpty ? [left] : [one, left]
}

const IMAGES = ['image/png', 'image/jpeg', 'image/gif', 'image/webp'] as const

/** The address of the data of a picture; undefined: there is none. */
function imageIn(data: Record<string, unknown>): string | undefined {
  for (const type of IMAGES) {
    const base64 = text.safeParse(data[type]).data?.replaceAll(/\s/g, '')
    if (base64 !== undefined && /^[A-Za-z0-9+/]+=*$/.test(base64)) return `data:${type};base64,${base64}`
  }
  return undefined
}

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
  const src = imageIn(one.data)
  if (src !== undefined) return { type: 'image', src }
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
