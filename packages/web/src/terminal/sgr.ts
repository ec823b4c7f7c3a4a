/**
 * SGR, the one family of control sequences that we obey: colours and weight. Blink and conceal are
 * not among them.
 */

/** 0–15 of the theme's palette, or `#rrggbb`. */
export type Color = number | string

export interface SgrStyle {
  readonly fg?: Color
  readonly bg?: Color
  readonly bold?: true
  readonly dim?: true
  readonly italic?: true
  readonly underline?: true
  readonly strike?: true
  readonly inverse?: true
}

type Flag = 'bold' | 'dim' | 'italic' | 'underline' | 'strike' | 'inverse'
const SET: Record<number, Flag> = {
  1: 'bold',
  2: 'dim',
  3: 'italic',
  4: 'underline',
  7: 'inverse',
  9: 'strike',
}
const CLEAR: Record<number, Flag[]> = {
  22: ['bold', 'dim'],
  23: ['italic'],
  24: ['underline'],
  27: ['inverse'],
  29: ['strike'],
}

/** The style after `CSI <parameters> m`. `null` is plain text. */
export function applySgr(style: SgrStyle | null, parameters: string): SgrStyle | null {
  let next: { -readonly [K in keyof SgrStyle]: SgrStyle[K] } = { ...style }
  // `38:2::r:g:b` is one parameter with sub-parameters; `38;2;r;g;b` is five.
  const groups = parameters
    .split(';')
    .map((group) => group.split(':').map((text) => (text === '' ? 0 : Number(text))))
  for (let i = 0; i < groups.length; i++) {
    const group = groups[i] ?? [0]
    const code = group[0] ?? 0
    const flag = SET[code]
    if (code === 0) next = {}
    else if (flag === 'underline' && group[1] === 0) delete next.underline
    else if (flag !== undefined) next[flag] = true
    else if (CLEAR[code] !== undefined) for (const cleared of CLEAR[code]) delete next[cleared]
    else if (code === 39) delete next.fg
    else if (code === 49) delete next.bg
    else if (code >= 30 && code <= 37) next.fg = code - 30
    else if (code >= 90 && code <= 97) next.fg = code - 82
    else if (code >= 40 && code <= 47) next.bg = code - 40
    else if (code >= 100 && code <= 107) next.bg = code - 92
    else if (code === 38 || code === 48) {
      const { color, used } = extendedColor(
        group,
        groups.slice(i + 1).map((rest) => rest[0] ?? 0),
      )
      i += used
      if (color !== undefined) next[code === 38 ? 'fg' : 'bg'] = color
    }
  }
  return Object.keys(next).length === 0 ? null : next
}

function extendedColor(group: number[], following: number[]): { color?: Color; used: number } {
  if (group.length > 1) {
    const values = group[1] === 2 && group.length >= 6 ? group.slice(3) : group.slice(2)
    return { used: 0, ...colorOf(group[1] ?? 0, values) }
  }
  const kind = following[0]
  const used = kind === 5 ? 2 : kind === 2 ? 4 : following.length
  return { used, ...colorOf(kind ?? 0, following.slice(1)) }
}

function colorOf(kind: number, values: number[]): { color?: Color } {
  if (kind === 5) {
    const index = values[0]
    return index !== undefined && index >= 0 && index <= 255
      ? { color: index < 16 ? index : color256(index) }
      : {}
  }
  const [r, g, b] = values
  if (kind !== 2 || r === undefined || g === undefined || b === undefined) return {}
  return { color: hex(r, g, b) }
}

/** 16–231: a 6×6×6 cube; 232–255: greys. */
function color256(index: number): string {
  if (index >= 232) return hex(...grey(8 + (index - 232) * 10))
  const step = (n: number) => (n === 0 ? 0 : 55 + n * 40)
  const cube = index - 16
  return hex(step(Math.floor(cube / 36)), step(Math.floor(cube / 6) % 6), step(cube % 6))
}

function grey(level: number): [number, number, number] {
  return [level, level, level]
}

function hex(r: number, g: number, b: number): string {
  const two = (n: number) =>
    Math.min(255, Math.max(0, Math.trunc(n)))
      .toString(16)
      .padStart(2, '0')
  return `#${two(r)}${two(g)}${two(b)}`
}

/** Equal styles have equal keys. */
export function styleKey(style: SgrStyle | null): string {
  if (style === null) return ''
  const { fg, bg, bold, dim, italic, underline, strike, inverse } = style
  return [fg, bg, bold, dim, italic, underline, strike, inverse].join('|')
}
