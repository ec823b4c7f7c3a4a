/**
 * The message field. Enter sends, Shift+Enter adds a line; an input method's Enter does neither.
 */
import type { Mode } from '@sandlot/shared/chat/mode'
import { type Author, MAX_COMMENT_CHARS } from '@sandlot/shared/chat/shares'
import { formatBytes } from '@sandlot/shared/base/format-bytes'
import { MAX_MESSAGE_CHARS } from '@sandlot/shared/chat/frames'
import { IMAGE_TYPES, MAX_IMAGE_BYTES, MAX_IMAGES } from '@sandlot/shared/chat/images'
import { ArrowUp, ImagePlus, MessageSquare, Paperclip, Square } from 'lucide-react'
import {
  type ClipboardEvent,
  type KeyboardEvent,
  type ReactNode,
  type Ref,
  type RefObject,
  useImperativeHandle,
  useLayoutEffect,
  useRef,
} from 'react'
import { cn } from '../../lib/cn.ts'
import { IconButton } from '../../ui/button.tsx'
import { AttachmentStrip } from './attachment-strip.tsx'
import { showToast } from '../../ui/toasts.tsx'
import { useFileMention, useMention } from './mentions.tsx'
import type { ComposerAttachments } from './use-attachments.ts'
import type { Suggestions } from './use-suggestions.tsx'
import type { Refusals } from '../../state/attachments.ts'
import { ModeMenu } from './mode-menu.tsx'

export interface ComposerHandle {
  focus(): void
  /** Unsent text is put before the text that is being written. */
  giveBack(text: string): void
}

const COLUMN = 'mx-auto w-full max-w-[48rem] px-3 sm:px-6'
const TALLEST_PX = 240
/** A longer text that is pasted becomes a file. */
const LONG_PASTE_CHARS = 4_000

interface ComposerProps {
  text: string
  onText: (text: string) => void
  onSend: (text: string) => void
  /** Something runs or is on its way: it can be stopped. */
  busy: boolean
  stopping: boolean
  onStop: () => void
  /** Null: it is the owner's to choose. */
  mode: Mode | null
  onMode: (mode: Mode) => void
  /** In a shared chat: the text is for its people alone. */
  comments?: {
    on: boolean
    onToggle: () => void
    /** People who may be mentioned. */
    people: readonly Author[]
  }
  placeholder?: string
  /** The last thing said; ↑ in an empty field brings it back. */
  lastSaid: string | null
  attachments: ComposerAttachments
  /** Above the field, in the same frame. */
  above?: ReactNode
  /** Shown next to the mode. */
  note?: ReactNode
  ref?: Ref<ComposerHandle>
}

export function Composer(props: ComposerProps) {
  const field = useRef<HTMLTextAreaElement>(null)
  useComposerHandle(props, field)
  const { comments } = props
  const commenting = comments?.on === true
  const longest = commenting ? MAX_COMMENT_CHARS : MAX_MESSAGE_CHARS
  const tooLong = props.text.length > longest
  const { blocked } = props.attachments
  const sendable = isSendable(props, commenting) && !tooLong
  const mention = useMentions(props, field, commenting)
  const onPaste = usePaste(props, field, commenting)
  const send = () => {
    if (sendable) props.onSend(props.text.trim())
  }
  return (
    <>
      <Above>{props.above}</Above>
      <div className={`${COLUMN} pb-3 sm:pb-5`}>
        <div
          className={cn(
            'composer relative rounded-2xl border border-line-strong bg-raised shadow-2 focus-within:border-accent-line',
            commenting && 'border-dashed',
          )}
        >
          {mention.list}
          {!commenting && <AttachmentStrip attachments={props.attachments} />}
          <label htmlFor="composer" className="sr-only">
            {commenting ? 'Comment' : 'Message'}
          </label>
          <textarea
            id="composer"
            dir="auto"
            ref={field}
            data-testid="composer"
            rows={1}
            value={props.text}
            {...mention.field}
            placeholder={placeholderOf(props, commenting)}
            aria-invalid={tooLong}
            onChange={(event) => props.onText(event.target.value)}
            onKeyDown={(event) => onFieldKey(event, props, mention, send)}
            onPaste={onPaste}
            className="block max-h-60 w-full resize-none bg-transparent px-4 pt-3.5 pb-1 text-base leading-6 outline-none placeholder:text-faint"
          />
          <ComposerBar {...props} field={field} longest={longest}>
            {(!props.busy || sendable) && (
              <SendButton
                label={commenting ? 'Send comment' : 'Send'}
                title={commenting ? 'Send comment (Enter)' : (blocked ?? 'Send (Enter)')}
                disabled={!sendable}
                onSend={send}
              />
            )}
          </ComposerBar>
        </div>
      </div>
    </>
  )
}

/** Apart from its length. */
function isSendable({ text, attachments: { items, blocked } }: ComposerProps, commenting: boolean): boolean {
  if (commenting) return text.trim() !== ''
  return (text.trim() !== '' || items.length > 0) && blocked === null
}

/** Suggestions of people in a comment, else of files. */
function useMentions(
  props: ComposerProps,
  field: RefObject<HTMLTextAreaElement | null>,
  commenting: boolean,
): Suggestions {
  const { comments } = props
  const { refusals } = props.attachments
  const person = useMention(field, props.text, commenting ? (comments?.people ?? []) : [], props.onText)
  const file = useFileMention(field, props.text, !commenting && refusals.files === null, props.onText)
  return commenting ? person : file
}

function onFieldKey(
  event: KeyboardEvent<HTMLTextAreaElement>,
  props: ComposerProps,
  mention: Suggestions,
  send: () => void,
): void {
  // 229: some browsers report the Enter that ends a composition after it has ended.
  if (event.nativeEvent.isComposing || event.keyCode === 229) return
  if (mention.onKeyDown(event)) return
  if (event.key === 'Enter' && !event.shiftKey && !event.ctrlKey && !event.altKey && !event.metaKey) {
    event.preventDefault()
    send()
  }
  if (event.key === 'ArrowUp' && props.text === '' && props.lastSaid !== null) {
    event.preventDefault()
    props.onText(props.lastSaid)
  }
}

function placeholderOf(props: ComposerProps, commenting: boolean): string {
  if (commenting) return 'Comment to people here; @ to mention'
  return props.placeholder ?? (props.busy ? 'Add to what is running…' : 'Ask Sandlot to do something…')
}

function Above({ children }: { children: ReactNode }) {
  return (
    <div className={COLUMN}>
      {/* A live region stays while it is empty, without a frame. */}
      <div className="above-composer rounded-t-2xl border-line-strong bg-raised has-[>:not(:empty)]:border has-[>:not(:empty)]:border-b-0">
        {children}
      </div>
    </div>
  )
}

/** `children`: the button that sends. */
function ComposerBar(
  props: ComposerProps & {
    field: RefObject<HTMLTextAreaElement | null>
    longest: number
    children: ReactNode
  },
) {
  const { comments, field, longest } = props
  const { add, refusals } = props.attachments
  const commenting = comments?.on === true
  return (
    <div className="flex items-center gap-1 px-2 pb-2">
      {!commenting && <AttachButton refusals={refusals} onFiles={(files) => void add(files)} />}
      {comments !== undefined && (
        <CommentSwitch
          on={commenting}
          onToggle={() => {
            comments.onToggle()
            field.current?.focus()
          }}
        />
      )}
      {props.mode !== null && !commenting && <ModeMenu mode={props.mode} onChange={props.onMode} />}
      <div className="flex min-w-0 flex-1 items-center gap-2 text-xs text-faint">
        {commenting ? null : props.note}
      </div>
      <TextLength length={props.text.length} longest={longest} />
      {props.busy && <StopButton stopping={props.stopping} onStop={props.onStop} />}
      {props.children}
    </div>
  )
}

/** `ref` of the composer; and the field is as high as its text. */
function useComposerHandle(props: ComposerProps, field: RefObject<HTMLTextAreaElement | null>): void {
  const { text: written, onText } = props
  useImperativeHandle(
    props.ref,
    () => ({
      focus: () => field.current?.focus(),
      giveBack: (text) => onText([text, written].filter((part) => part.trim() !== '').join('\n\n')),
    }),
    [written, onText],
  )
  useLayoutEffect(() => {
    const element = field.current
    if (element === null) return
    element.style.height = 'auto'
    element.style.height = `${Math.min(element.scrollHeight, TALLEST_PX)}px`
  }, [props.text])
}

/** Pasted files, and a long text as a file. */
function usePaste(props: ComposerProps, field: RefObject<HTMLTextAreaElement | null>, commenting: boolean) {
  const { add, remove, refusals } = props.attachments
  const onPaste = (event: ClipboardEvent<HTMLTextAreaElement>) => {
    const { files } = event.clipboardData
    const pasted = event.clipboardData.getData('text/plain')
    if (!commenting && refusals.files === null && pasted.length > LONG_PASTE_CHARS) {
      event.preventDefault()
      void attachText(pasted)
      return
    }
    // Office programs put a picture of the copied text beside it: the words are meant.
    if (files.length === 0 || event.clipboardData.types.includes('text/plain')) return
    event.preventDefault()
    void add([...files])
  }
  const attachText = async (pasted: string) => {
    const [key] = await add([new File([pasted], 'pasted text.txt', { type: 'text/plain' })])
    if (key === undefined) return
    const onClick = () => {
      remove(key)
      const { selectionStart: at = 0, selectionEnd: to = 0, value = '' } = field.current ?? {}
      props.onText(value.slice(0, at) + pasted + value.slice(to))
    }
    showToast('The long text is attached as a file.', {
      action: { label: 'Put it into the message', onClick },
    })
  }
  return onPaste
}

function TextLength({ length, longest }: { length: number; longest: number }) {
  if (length <= longest * 0.9) return null
  return (
    <span className={cn('text-xs tabular-nums', length > longest ? 'text-failed' : 'text-faint')}>
      {length.toLocaleString('en')} / {longest.toLocaleString('en')}
    </span>
  )
}

function StopButton({ stopping, onStop }: { stopping: boolean; onStop: () => void }) {
  return (
    <button
      type="button"
      data-testid="stop"
      aria-label="Stop"
      title="Stop (Esc)"
      disabled={stopping}
      onClick={onStop}
      className="inline-flex size-9 pointer-coarse:size-11 items-center justify-center rounded-full border border-line-strong bg-raised text-ink hover:bg-hover disabled:opacity-50"
    >
      <Square className="size-3 fill-current" aria-hidden />
    </button>
  )
}

function SendButton(props: { label: string; title: string; disabled: boolean; onSend: () => void }) {
  return (
    <button
      type="button"
      data-testid="send"
      aria-label={props.label}
      title={props.title}
      disabled={props.disabled}
      onClick={props.onSend}
      className="inline-flex size-9 pointer-coarse:size-11 items-center justify-center rounded-full bg-accent text-accent-ink hover:bg-accent-strong disabled:bg-active disabled:text-faint"
    >
      <ArrowUp className="size-4.5" aria-hidden />
    </button>
  )
}

const IMAGES = `up to ${MAX_IMAGES} images of ${formatBytes(MAX_IMAGE_BYTES)} (PNG, JPEG, GIF, WebP)`

function AttachButton(props: { refusals: Refusals; onFiles: (files: readonly File[]) => void }) {
  const { refusals } = props
  const input = useRef<HTMLInputElement>(null)
  if (refusals.files !== null && refusals.images !== null) return null
  const onlyImages = refusals.files !== null
  const Icon = onlyImages ? ImagePlus : Paperclip
  return (
    <>
      <input
        ref={input}
        type="file"
        accept={onlyImages ? IMAGE_TYPES.join() : undefined}
        multiple
        hidden
        data-testid="image-files"
        onChange={(event) => {
          props.onFiles([...(event.currentTarget.files ?? [])])
          // The same file may be chosen again after it was removed.
          event.currentTarget.value = ''
        }}
      />
      <IconButton
        label={onlyImages ? 'Attach images' : 'Attach files'}
        title={
          onlyImages
            ? `Attach ${IMAGES}. Or paste or drop them.`
            : `Attach files of any kind: they go into your workspace. ${refusals.images === null ? `The model sees ${IMAGES}. ` : ''}Or paste or drop them.`
        }
        onClick={() => input.current?.click()}
      >
        <Icon aria-hidden />
      </IconButton>
    </>
  )
}

function CommentSwitch(props: { on: boolean; onToggle: () => void }) {
  return (
    <button
      type="button"
      role="switch"
      aria-checked={props.on}
      aria-label="Comment, not for the agent"
      title="Comment, not for the agent"
      data-testid="comment-switch"
      onClick={props.onToggle}
      className={cn(
        'inline-flex h-8 shrink-0 items-center gap-1.5 rounded-lg px-2 text-xs font-medium pointer-coarse:h-11 pointer-coarse:min-w-11',
        props.on ? 'bg-accent-wash text-accent' : 'text-muted hover:bg-hover hover:text-ink',
      )}
    >
      <MessageSquare className="size-4" aria-hidden />
      {props.on ? 'Comment, not for the agent' : <span className="max-sm:hidden">Comment</span>}
    </button>
  )
}
