/** The view for a file: by the media type of its bytes, and for a text by its name. */

export type Kind =
  | 'image'
  | 'pdf'
  | 'table'
  | 'markdown'
  | 'notebook'
  | 'audio'
  | 'video'
  | 'json'
  | 'patch'
  | 'page'
  | 'code'
  | 'text'
  | 'bytes'

const TEXTS: Record<string, Kind> = {
  ...named('table', 'csv tsv tab'),
  ...named('markdown', 'md markdown mdx'),
  ...named('notebook', 'ipynb'),
  ...named('json', 'json jsonl ndjson geojson webmanifest'),
  ...named('patch', 'diff patch'),
  ...named('page', 'html htm xhtml'),
  ...named(
    'code',
    'js javascript jsx ts tsx mjs cjs mts cts c h cpp cc cxx hpp cs java kotlin kt go rs swift scala php dart zig proto py pyi rb sh bash zsh fish mk sql yaml yml toml ini env properties conf css scss less xml vue svelte json5 jsonc dockerfile makefile r jl lua pl ex exs hs tex graphql tf gradle',
  ),
}

/** Kinds that a name alone determines, before a byte was read. */
const BY_NAME: Record<string, Kind> = {
  ...TEXTS,
  ...named('image', 'png jpg jpeg gif webp avif bmp ico svg'),
  ...named('pdf', 'pdf'),
  ...named('audio', 'mp3 wav ogg oga opus flac m4a aac'),
  ...named('video', 'mp4 webm mov m4v ogv mkv'),
}

function named(kind: Kind, endings: string): Record<string, Kind> {
  return Object.fromEntries(endings.split(' ').map((ending) => [ending, kind]))
}

/** The end of a name in small letters: `csv`, `dockerfile`. */
export function endingOf(path: string): string {
  const name = path.slice(path.lastIndexOf('/') + 1).toLowerCase()
  return name.slice(name.lastIndexOf('.') + 1)
}

/** The kind by the name; undefined where it determines none. */
export function kindByName(path: string): Kind | undefined {
  return Object.hasOwn(BY_NAME, endingOf(path)) ? BY_NAME[endingOf(path)] : undefined
}

export function kindOf(type: string, path: string): Kind {
  if (type === 'application/pdf') return 'pdf'
  // No browser but one shows it.
  if (type.startsWith('image/') && type !== 'image/heic') return 'image'
  if (type.startsWith('audio/')) return 'audio'
  if (type.startsWith('video/')) return 'video'
  if (!type.startsWith('text/')) return 'bytes'
  return Object.hasOwn(TEXTS, endingOf(path)) ? (TEXTS[endingOf(path)] ?? 'text') : 'text'
}

const PREVIEWED: ReadonlySet<Kind> = new Set([
  'image',
  'pdf',
  'table',
  'markdown',
  'notebook',
  'audio',
  'video',
  'page',
])

/** One would rather see it than read its text. */
export function isPreviewed(path: string): boolean {
  const kind = kindByName(path)
  return kind !== undefined && PREVIEWED.has(kind)
}
