/** The page's colours as xterm wants them. */
import type { ITheme } from '@xterm/xterm'

const NAMES = [
  'black',
  'red',
  'green',
  'yellow',
  'blue',
  'magenta',
  'cyan',
  'white',
  'brightBlack',
  'brightRed',
  'brightGreen',
  'brightYellow',
  'brightBlue',
  'brightMagenta',
  'brightCyan',
  'brightWhite',
] as const

export function terminalTheme(): ITheme {
  const colors = Object.fromEntries(NAMES.map((name, index) => [name, token(`--term-${index}`)]))
  return {
    ...colors,
    background: token('--canvas'),
    foreground: token('--ink'),
    cursor: token('--accent'),
    cursorAccent: token('--canvas'),
    selectionBackground: `${token('--accent')}55`,
  }
}

/** Returns the function that ends it. */
export function whenThemeChanges(changed: () => void): () => void {
  const observer = new MutationObserver(changed)
  observer.observe(document.documentElement, { attributeFilter: ['data-theme'] })
  return () => observer.disconnect()
}

/** As `#rrggbb`: xterm reads no newer notation. */
function token(name: string): string {
  const pen = document.createElement('canvas').getContext('2d', { willReadFrequently: true })
  if (pen === null) return '#888888'
  pen.fillStyle = getComputedStyle(document.documentElement).getPropertyValue(name).trim()
  pen.fillRect(0, 0, 1, 1)
  const [red = 0, green = 0, blue = 0] = pen.getImageData(0, 0, 1, 1).data
  return `#${[red, green, blue].map((part) => part.toString(16).padStart(2, '0')).join('')}`
}
