/**
 * One terminal of the sandbox on the screen, and the socket that its bytes come over. They go
 * straight to xterm: React knows only how it stands. What the screen has not shown yet is bounded,
 * because the sender waits for our word.
 */
import { FitAddon } from '@xterm/addon-fit'
import { type ITheme, Terminal } from '@xterm/xterm'
import '@xterm/xterm/css/xterm.css'
import {
  TERMINAL_TAKEN,
  type TerminalAsk,
  TERMINAL_WINDOW_BYTES,
  terminalNotice,
} from '@sandlot/shared/workspace/terminals'
import { reconnectMs } from '../net/backoff.ts'
import { call } from '../net/call.ts'
import { screenText } from './screen-text.ts'

export type TerminalState =
  | { status: 'connecting' | 'open' | 'waiting' }
  /** Another page shows it now. */
  | { status: 'taken' }
  /** `text`: how, as a sentence. */
  | { status: 'ended'; text: string }

const ACK_EVERY_BYTES = TERMINAL_WINDOW_BYTES / 8
/** The most bytes of one message, when much is pasted. */
const MOST_TYPED_BYTES = 64 * 1024
const SCROLLBACK_LINES = 5_000
const SIGNED_OUT = 4401
const PIECE_BYTES = 16 * 1024
/** So many bytes at once are not read aloud, which would take most of the time. */
const FLOOD_BYTES = 128 * 1024
/** After a flood, until what is on the screen is for screen readers again. */
const CALM_MS = 300

export class LiveTerminal {
  readonly #id: string
  readonly #onState: (state: TerminalState) => void
  readonly #screen: Terminal
  readonly #fit = new FitAddon()
  readonly #leave: (() => void)[] = []
  #socket: WebSocket | undefined
  #timer: ReturnType<typeof setTimeout> | undefined
  #attempt = 0
  /** Offsets in everything that the terminal has shown. */
  #received = 0
  #shown = 0
  #acknowledged = 0
  #ctrl = false
  #calm: ReturnType<typeof setTimeout> | undefined
  #over = false

  constructor(id: string, element: HTMLElement, onState: (state: TerminalState) => void) {
    this.#id = id
    this.#onState = onState
    this.#screen = new Terminal({
      fontFamily: getComputedStyle(element).fontFamily,
      fontSize: 13,
      scrollback: SCROLLBACK_LINES,
      cursorBlink: !matchMedia('(prefers-reduced-motion: reduce)').matches,
      theme: terminalTheme(),
      // Colours of programs stay readable on either ground.
      minimumContrastRatio: 4.5,
      screenReaderMode: true,
    })
    this.#screen.loadAddon(this.#fit)
    this.#screen.open(element)
    this.#screen.attachCustomKeyEventHandler((event) => this.#takesKey(event))
    this.#screen.onData((text) => this.type(text))
    this.#screen.onBinary((text) => this.#send(Uint8Array.from(text, (char) => char.charCodeAt(0))))
    this.#screen.onResize(({ cols, rows }) => this.#say({ type: 'resize', columns: cols, rows }))
    const sizes = new ResizeObserver(() => this.#fitNow(element))
    sizes.observe(element)
    this.#leave.push(
      () => sizes.disconnect(),
      whenThemeChanges(() => {
        this.#screen.options.theme = terminalTheme()
      }),
    )
    this.#fitNow(element)
    this.connect()
  }

  /** Shows it here; another page that does is closed. */
  connect(): void {
    clearTimeout(this.#timer)
    this.#onState({ status: this.#attempt === 0 ? 'connecting' : 'waiting' })
    const address = new URL(`/api/terminals/${this.#id}?from=${this.#received}`, location.href)
    address.protocol = address.protocol === 'https:' ? 'wss:' : 'ws:'
    const socket = new WebSocket(address)
    socket.binaryType = 'arraybuffer'
    this.#socket = socket
    socket.addEventListener('message', ({ data }: MessageEvent<ArrayBuffer | string>) => {
      if (this.#socket !== socket) return
      if (typeof data === 'string') this.#receiveState(data)
      else this.#show(new Uint8Array(data))
    })
    socket.addEventListener('close', ({ code }) => {
      if (this.#socket === socket) void this.#closed(code)
    })
  }

  /** Sends text as if it had been typed there. */
  type(text: string): void {
    const keys =
      this.#ctrl && text.length === 1 ? String.fromCharCode(text.toUpperCase().charCodeAt(0) & 31) : text
    this.#ctrl = false
    this.#send(new TextEncoder().encode(keys))
  }

  /** In bracketed form, if the terminal asks for it: programs can distinguish it from typing. */
  paste(text: string): void {
    this.#screen.paste(text)
  }

  /** The next key is pressed together with Ctrl. */
  holdCtrl(): void {
    this.#ctrl = true
    this.focus()
  }

  focus(): void {
    this.#screen.focus()
  }

  /** The selection; empty: nothing. */
  selection(): string {
    return this.#screen.getSelection()
  }

  /** The selection, else the text on the screen. */
  text(): string {
    return this.selection() || screenText(this.#screen.buffer.active, this.#screen.rows)
  }

  close(): void {
    this.#over = true
    clearTimeout(this.#timer)
    clearTimeout(this.#calm)
    for (const leave of this.#leave) leave()
    this.#socket?.close()
    this.#socket = undefined
    this.#screen.dispose()
  }

  #fitNow(element: HTMLElement): void {
    // Hidden behind another one it has no size.
    if (element.clientWidth > 0 && element.clientHeight > 0) this.#fit.fit()
  }

  #receiveState(text: string): void {
    const state = terminalNotice.parse(JSON.parse(text))
    if (state.type === 'ended') {
      this.#over = true
      return this.#onState({ status: 'ended', text: endText(state) })
    }
    this.#attempt = 0
    // Something in between is not kept any more: half a screen would be a lie.
    if (state.offset !== this.#received && this.#received > 0) this.#screen.reset()
    this.#received = state.offset
    this.#shown = state.offset
    this.#acknowledged = state.offset
    this.#say({ type: 'resize', columns: this.#screen.cols, rows: this.#screen.rows })
    this.#onState({ status: 'open' })
  }

  #show(bytes: Uint8Array): void {
    // Each piece is read at a stretch: short ones leave room for frames.
    for (let at = 0; at < bytes.length; at += PIECE_BYTES) this.#write(bytes.subarray(at, at + PIECE_BYTES))
  }

  #write(bytes: Uint8Array): void {
    const socket = this.#socket
    this.#received += bytes.length
    if (this.#received - this.#shown > FLOOD_BYTES) this.#readAloud(false)
    this.#screen.write(bytes, () => {
      if (this.#socket !== socket) return
      this.#shown += bytes.length
      if (this.#shown === this.#received) this.#readAloud(true)
      if (this.#shown < this.#received && this.#shown - this.#acknowledged < ACK_EVERY_BYTES) return
      this.#acknowledged = this.#shown
      this.#say({ type: 'ack', offset: this.#shown })
    })
  }

  #readAloud(on: boolean): void {
    const { options } = this.#screen
    clearTimeout(this.#calm)
    if (options.screenReaderMode === on) return
    if (on)
      this.#calm = setTimeout(() => {
        options.screenReaderMode = true
      }, CALM_MS)
    else options.screenReaderMode = false
  }

  async #closed(code: number): Promise<void> {
    this.#socket = undefined
    if (this.#over) return
    if (code === TERMINAL_TAKEN) return this.#onState({ status: 'taken' })
    this.#onState({ status: 'waiting' })
    // A refusal does not say why: whether it is there still does the list.
    const ended = code !== SIGNED_OUT && (await this.#hasEnded())
    if (this.#over || this.#socket !== undefined) return
    if (ended) {
      this.#over = true
      return this.#onState({ status: 'ended', text: 'This terminal has ended.' })
    }
    this.#timer = setTimeout(() => this.connect(), reconnectMs(++this.#attempt))
  }

  async #hasEnded(): Promise<boolean> {
    try {
      return !(await call('listTerminals')).terminals.some(({ id }) => id === this.#id)
    } catch {
      // Not reachable: nothing is known.
      return false
    }
  }

  #send(bytes: Uint8Array<ArrayBuffer>): void {
    const socket = this.#socket
    if (socket?.readyState !== WebSocket.OPEN) return
    for (let at = 0; at < bytes.length; at += MOST_TYPED_BYTES)
      socket.send(bytes.subarray(at, at + MOST_TYPED_BYTES))
  }

  #say(ask: TerminalAsk): void {
    if (this.#socket?.readyState === WebSocket.OPEN) this.#socket.send(JSON.stringify(ask))
  }

  /** False: it is the page's or the browser's, and not the terminal's. */
  #takesKey(event: KeyboardEvent): boolean {
    if (event.key === 'Escape' && event.shiftKey) return false
    const mod = event.ctrlKey || event.metaKey
    const key = event.key.toLowerCase()
    // The browser pastes.
    if (mod && key === 'v') return false
    if (mod && key === 'c' && (event.shiftKey || this.#screen.hasSelection())) {
      if (event.type === 'keydown') {
        event.preventDefault()
        void navigator.clipboard?.writeText(this.selection())
        this.#screen.clearSelection()
      }
      return false
    }
    return true
  }
}

function endText({
  exitCode,
  signal,
}: {
  exitCode?: number | undefined
  signal?: string | undefined
}): string {
  if (exitCode === 0) return 'This terminal has ended.'
  if (exitCode !== undefined) return `This terminal has ended with exit code ${exitCode}.`
  return signal === undefined
    ? 'This terminal ended with its sandbox.'
    : `This terminal was stopped by ${signal}.`
}

// ── The page's colours, as xterm wants them
// ────────────────────────────────────────────────────────────────

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

function terminalTheme(): ITheme {
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
function whenThemeChanges(changed: () => void): () => void {
  const observer = new MutationObserver(changed)
  observer.observe(document.documentElement, { attributeFilter: ['data-theme'] })
  return () => observer.disconnect()
}

/** In the form `#rrggbb`: xterm reads no newer notation. */
function token(name: string): string {
  const pen = document.createElement('canvas').getContext('2d', { willReadFrequently: true })
  if (pen === null) return '#888888'
  pen.fillStyle = getComputedStyle(document.documentElement).getPropertyValue(name).trim()
  pen.fillRect(0, 0, 1, 1)
  const [red = 0, green = 0, blue = 0] = pen.getImageData(0, 0, 1, 1).data
  return `#${[red, green, blue].map((part) => part.toString(16).padStart(2, '0')).join('')}`
}
