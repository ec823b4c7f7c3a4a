/** From an SGR style to class names and inline colours, readable in either theme. */
import type { CSSProperties } from 'react'
import type { Color, SgrStyle } from './sgr.ts'

/** The 16 colours as backgrounds; as text they are theme tokens (styles/code.css). */
const BACKGROUNDS = [
  '#3b3a38',
  '#a8322d',
  '#3f7d4a',
  '#8a6d1f',
  '#3860b0',
  '#8e3f97',
  '#2c7a86',
  '#c9c6c0',
  '#6b6a67',
  '#c8443d',
  '#4f9a5d',
  '#b08c2c',
  '#4b78d1',
  '#ab55b5',
  '#3d97a5',
  '#efece6',
] as const

interface SpanLook {
  className: string | undefined
  style: CSSProperties | undefined
}

export function lookOf(sgr: SgrStyle): SpanLook {
  const classes: string[] = []
  if (sgr.bold === true) classes.push('t-bold')
  if (sgr.dim === true && sgr.fg === undefined) classes.push('t-dim')
  if (sgr.italic === true) classes.push('t-italic')
  if (sgr.underline === true) classes.push('t-underline')
  if (sgr.strike === true) classes.push('t-strike')
  const background = sgr.inverse === true ? (sgr.fg ?? null) : sgr.bg
  if (background === null) classes.push('t-inverse')
  if (background !== undefined && background !== null) {
    // A program may paint text in the colour of its ground. We choose the text's colour ourselves
    // there.
    const ground = rgbOf(background)
    return { className: classes.join(' '), style: { backgroundColor: ground, color: inkOn(ground) } }
  }
  let style: CSSProperties | undefined
  if (background === undefined && typeof sgr.fg === 'number') classes.push(`t-fg-${sgr.fg}`)
  if (background === undefined && typeof sgr.fg === 'string') {
    classes.push('term-rgb')
    style = { ['--rgb' as string]: sgr.fg }
  }
  return { className: classes.length === 0 ? undefined : classes.join(' '), style }
}

function rgbOf(color: Color): string {
  return typeof color === 'string' ? color : (BACKGROUNDS[color] ?? '#3b3a38')
}

/** Black or white, whichever stands out more; always at least 4.5:1. */
export function inkOn(rgb: string): string {
  const channel = (from: number) => {
    const value = Number.parseInt(rgb.slice(from, from + 2), 16) / 255
    return value <= 0.03928 ? value / 12.92 : ((value + 0.055) / 1.055) ** 2.4
  }
  const luminance = 0.2126 * channel(1) + 0.7152 * channel(3) + 0.0722 * channel(5)
  return luminance > 0.179 ? '#000000' : '#ffffff'
}
