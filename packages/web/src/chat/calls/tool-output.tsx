/**
 * Output of a call: live while it runs, from the store when it has ended, or the text that the
 * model got.
 */
import type { CallEntry } from '@sandlot/shared/transcript/entries'
import { Download, ExternalLink } from 'lucide-react'
import { type ReactNode, useEffect, useMemo, useRef, useState } from 'react'
import type { ToolCallContent } from '@sandlot/shared/chat/call'
import { formatBytes } from '@sandlot/shared/base/format-bytes'
import { formatCount } from '../../lib/format.ts'
import { outputUrl } from '../../net/outputs.ts'
import { renderAnsi } from '../../terminal/ansi-text.ts'
import { useReading } from '../../state/reading.ts'
import { AnsiView, useFilledGaps, useStoredOutput } from '../../terminal/output-view.tsx'
import { LiveAnsi } from '../../terminal/live-ansi.ts'
import { phaseOf } from '@sandlot/shared/transcript/call-words'
import { unstoredWords } from './unstored-words.ts'
import { cn } from '../../lib/cn.ts'
import { attachmentsOf } from './call-attachments.ts'

const describeGap = (bytes: number) => `⋯ ${formatBytes(bytes)} not shown ⋯`

export function LiveToolOutput(props: { call: CallEntry; sessionId: string }) {
  const { call } = props
  const filled = useFilledGaps(call.output, outputUrl(props.sessionId, call.id))
  const [live] = useState(() => new LiveAnsi())
  const rendered = live.render(call.output.pieces, filled, describeGap)
  if (call.output.pieces.length === 0) return null
  return (
    <OutputPane label={`Live output of ${call.title}`} following content={rendered}>
      <AnsiView rendered={rendered} />
    </OutputPane>
  )
}

/** `visible`: fetch the stored output now. */
export function SettledToolOutput(props: { call: CallEntry; sessionId: string; visible: boolean }) {
  const { call } = props
  if (call.outputInfo !== undefined && call.outputInfo.bytes > 0) {
    return (
      <StoredToolOutput
        call={call}
        info={call.outputInfo}
        sessionId={props.sessionId}
        visible={props.visible}
      />
    )
  }
  const texts = call.content.flatMap((item) =>
    item.type === 'content' && item.content.type === 'text' ? [item.content.text] : [],
  )
  const hasDiff = call.content.some((item) => item.type === 'diff')
  const text = texts.length > 0 ? texts.join('\n') : hasDiff ? '' : (call.rawOutput?.forModel ?? '')
  return (
    <>
      <TextOutput text={text} label={`Result of ${call.title}`} />
      <ToolAttachments content={call.content} />
    </>
  )
}

function TextOutput(props: { text: string; label: string }) {
  const rendered = useMemo(() => renderAnsi(props.text, 4000), [props.text])
  if (props.text.trim() === '') return null
  return (
    <OutputPane label={props.label} following={false} content={rendered}>
      <AnsiView rendered={rendered} />
    </OutputPane>
  )
}

function StoredToolOutput(props: {
  call: CallEntry
  info: NonNullable<CallEntry['outputInfo']>
  sessionId: string
  visible: boolean
}) {
  const { call, info } = props
  const { snapshot } = useReading()
  const url = snapshot === true ? info.url : outputUrl(props.sessionId, call.id)
  const stored = info.unstored?.from ?? info.bytes
  const output = useStoredOutput(stored, url, props.visible && stored > 0)
  const forModel = call.rawOutput?.forModel ?? ''
  const label = `Output of ${call.title}`
  return (
    <div className="flex flex-col gap-2">
      {output.state === 'ready' ? (
        // Errors stand at the end.
        <OutputPane label={label} following={phaseOf(call) !== 'done'} content={output.rendered}>
          <AnsiView rendered={output.rendered} />
        </OutputPane>
      ) : (
        <TextOutput text={forModel} label={label} />
      )}
      {output.state === 'unreadable' && (
        <p className="text-xs text-muted">This is what the model saw. Full output: {output.message}</p>
      )}
      <OutputFooter info={info} url={url} />
    </div>
  )
}

function OutputFooter(props: { info: NonNullable<CallEntry['outputInfo']>; url: string }) {
  const { info, url } = props
  const size = `${formatBytes(info.bytes)}, ${formatCount(info.lines, 'line')}`
  const link =
    'inline-flex items-center gap-1 pointer-coarse:min-h-11 font-medium text-accent underline-offset-2 hover:underline'
  return (
    <div
      className="flex flex-wrap items-center gap-x-4 gap-y-1 text-xs text-muted"
      data-testid="output-footer"
    >
      <span className="min-w-0">
        {info.truncated ? `${size} in total. The model saw the beginning and the end.` : size}
      </span>
      {info.unstored !== undefined && <span className="min-w-0">{unstoredWords(info.unstored)}</span>}
      <span className={info.unstored?.from === 0 ? 'hidden' : 'flex gap-4'}>
        <a className={link} href={url} target="_blank" rel="noopener">
          <ExternalLink className="size-3" aria-hidden />
          {info.unstored === undefined ? 'Show full output' : 'Show stored output'}
        </a>
        <a className={link} href={`${url}?download=1`} download>
          <Download className="size-3" aria-hidden />
          Download
        </a>
      </span>
    </div>
  )
}

/**
 * A scrolling pane of output. While `following`, it stays at its end unless the reader scrolled up.
 * Focusable, so that the keyboard can scroll it.
 */
function OutputPane(props: { children: ReactNode; label: string; following: boolean; content: unknown }) {
  const pane = useRef<HTMLDivElement>(null)
  const atEnd = useRef(true)
  useEffect(() => {
    const element = pane.current
    if (element !== null && props.following && atEnd.current) element.scrollTop = element.scrollHeight
  }, [props.content, props.following])
  return (
    <div
      ref={pane}
      data-testid="tool-output"
      role="group"
      aria-label={props.label}
      tabIndex={0}
      onScroll={(event) => {
        const element = event.currentTarget
        atEnd.current = element.scrollHeight - element.scrollTop - element.clientHeight < 24
      }}
      className={cn('term max-h-80 overflow-auto rounded-md border border-line bg-sunken px-3 py-2')}
    >
      {props.children}
    </div>
  )
}

/** Links of a call, such as where to sign in. */
function ToolAttachments(props: { content: readonly ToolCallContent[] }) {
  const { links } = useMemo(() => attachmentsOf(props.content), [props.content])
  if (links.length === 0) return null
  return (
    <div className="flex flex-wrap items-center gap-2">
      {links.map(({ url, name, host }) => (
        <a
          key={url}
          href={url}
          target="_blank"
          rel="noopener noreferrer"
          className="inline-flex max-w-full items-center gap-1.5 rounded-md border border-line px-2.5 py-1 text-sm hover:bg-hover"
        >
          <span className="truncate">{name}</span>
          <span className="truncate text-xs text-muted">{host}</span>
          <ExternalLink className="size-3.5 shrink-0" aria-hidden />
        </a>
      ))}
    </div>
  )
}
