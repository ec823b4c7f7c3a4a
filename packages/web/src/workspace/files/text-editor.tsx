/** A text of the workspace, to be changed and saved over the version that was read. */
import { messageOf } from '@sandlot/shared/base/errors'
import { type KeyboardEvent, useEffect, useMemo, useRef, useState } from 'react'
import { readText, saveTextFile } from '../../net/files.ts'
import { ApiError } from '../../net/http.ts'
import { Alert } from '../../ui/alert.tsx'
import { Button } from '../../ui/button.tsx'
import { Spinner } from '../../ui/spinner.tsx'

interface Opened {
  /** The text of the file. */
  text: string
  etag: string
}

/** Unsaved changes of closed editors, by path. */
const unsaved = new Map<string, Opened & { written: string }>()

export function TextEditor(props: { path: string; onSaved: () => void; onClose: () => void }) {
  const { path } = props
  const { opened, text, setText, problem, conflict, busy, changed, open, save } = useTextFile(
    path,
    props.onSaved,
  )
  const [leaving, setLeaving] = useState(false)
  const onKeyDown = (event: KeyboardEvent) => {
    if ((event.ctrlKey || event.metaKey) && event.key.toLowerCase() === 's') {
      event.preventDefault()
      if (changed && !busy && opened !== null) void save(opened.etag)
    }
    // Closing the dock would discard the text.
    if (event.key === 'Escape') event.nativeEvent.stopImmediatePropagation()
  }
  return (
    <div className="flex min-h-0 flex-1 flex-col" onKeyDown={onKeyDown}>
      {problem !== null && (
        <div className="p-3">
          <Alert>{problem}</Alert>
        </div>
      )}
      {conflict !== null && (
        <Question words={`${conflict} Your changes aren’t saved.`} label="File changed">
          <Button size="sm" onClick={() => void open(new AbortController().signal)}>
            Use the other version
          </Button>
          <Button size="sm" variant="danger" disabled={busy} onClick={() => void save(null)}>
            Overwrite with mine
          </Button>
        </Question>
      )}
      {leaving && (
        <DiscardQuestion
          onStay={() => setLeaving(false)}
          onDiscard={() => {
            unsaved.delete(path)
            props.onClose()
          }}
        />
      )}
      {opened !== null && <TextField path={path} text={text} onText={setText} />}
      {opened === null && problem === null && (
        <p role="status" className="flex items-center gap-2 p-5 text-sm text-muted">
          <Spinner /> Loading…
        </p>
      )}
      <SaveBar
        state={opened === null ? '' : changed ? 'Changed' : 'Saved'}
        disabled={!changed || busy || opened === null}
        onClose={() => (changed ? setLeaving(true) : props.onClose())}
        onSave={() => opened !== null && void save(opened.etag)}
      />
    </div>
  )
}

/** `save`: over the version with this tag, or (null) over any. */
function useTextFile(path: string, onSaved: () => void) {
  const [opened, setOpened] = useState<Opened | null>(null)
  const [text, setText] = useState('')
  const [problem, setProblem] = useState<string | null>(null)
  const [conflict, setConflict] = useState<string | null>(null)
  const [busy, setBusy] = useState(false)

  const open = async (signal: AbortSignal) => {
    const left = unsaved.get(path)
    if (left !== undefined && opened === null) {
      setOpened(left)
      setText(left.written.replaceAll('\r\n', '\n'))
      return
    }
    try {
      const read = await readText(path, signal)
      setOpened(read)
      // A field knows one kind of line end.
      setText(read.text.replaceAll('\r\n', '\n'))
      setConflict(null)
      setProblem(null)
    } catch (error) {
      if (!signal.aborted) setProblem(messageOf(error))
    }
  }
  useEffect(() => {
    const controller = new AbortController()
    void open(controller.signal)
    return () => controller.abort()
    // oxlint-disable-next-line react-hooks/exhaustive-deps
  }, [path])

  const hasReturns = opened?.text.includes('\r\n') === true
  const written = hasReturns ? text.replaceAll('\n', '\r\n') : text
  const changed = opened !== null && written !== opened.text
  useUnsaved(path, opened, written)

  const save = async (over: string | null) => {
    setBusy(true)
    try {
      const etag = await saveTextFile(path, written, over)
      setOpened({ text: written, etag })
      setConflict(null)
      setProblem(null)
      onSaved()
    } catch (error) {
      if (error instanceof ApiError && error.code === 'conflict') setConflict(error.message)
      else setProblem(messageOf(error))
    } finally {
      setBusy(false)
    }
  }
  return { opened, text, setText, problem, conflict, busy, changed, open, save }
}

/** Keeps changes of a closed editor, and asks before the page is left. */
function useUnsaved(path: string, opened: Opened | null, written: string): void {
  const changed = opened !== null && written !== opened.text
  useEffect(() => {
    if (opened !== null && changed) unsaved.set(path, { ...opened, written })
    else if (opened !== null) unsaved.delete(path)
  }, [path, opened, changed, written])
  useEffect(() => {
    if (!changed) return
    const ask = (event: BeforeUnloadEvent) => event.preventDefault()
    addEventListener('beforeunload', ask)
    return () => removeEventListener('beforeunload', ask)
  }, [changed])
}

function TextField(props: { path: string; text: string; onText: (text: string) => void }) {
  const { path, text } = props
  const numbers = useRef<HTMLPreElement>(null)
  const lines = useMemo(() => text.split('\n').length, [text])
  const gutter = useMemo(() => Array.from({ length: lines }, (_, n) => n + 1).join('\n'), [lines])
  return (
    <div className="flex min-h-0 flex-1 overflow-hidden bg-sunken">
      <pre
        ref={numbers}
        aria-hidden
        className="code shrink-0 overflow-hidden py-3 pr-2 pl-3 text-right text-faint select-none"
      >
        {gutter}
      </pre>
      <textarea
        aria-label={`Text of ${path}`}
        value={text}
        wrap="off"
        spellCheck={false}
        autoCapitalize="off"
        onChange={(event) => props.onText(event.target.value)}
        onScroll={({ currentTarget }) => {
          if (numbers.current !== null) numbers.current.scrollTop = currentTarget.scrollTop
        }}
        className="code min-w-0 flex-1 resize-none bg-transparent py-3 pr-3 pl-1 outline-none"
      />
    </div>
  )
}

function DiscardQuestion(props: { onStay: () => void; onDiscard: () => void }) {
  return (
    <Question words="You have unsaved changes." label="Discard your changes?">
      <Button size="sm" onClick={props.onStay}>
        Keep editing
      </Button>
      <Button size="sm" variant="danger" onClick={props.onDiscard}>
        Discard
      </Button>
    </Question>
  )
}

function SaveBar(props: { state: string; disabled: boolean; onClose: () => void; onSave: () => void }) {
  return (
    <div className="flex items-center gap-2 border-t border-line px-3 py-2">
      <p role="status" className="min-w-0 flex-1 truncate text-xs text-muted">
        {props.state}
      </p>
      <Button size="sm" onClick={props.onClose}>
        Close
      </Button>
      <Button
        size="sm"
        variant="primary"
        title="Save (Ctrl S)"
        disabled={props.disabled}
        onClick={props.onSave}
      >
        Save
      </Button>
    </div>
  )
}

function Question(props: { words: string; label: string; children: React.ReactNode }) {
  return (
    <div
      role="group"
      aria-label={props.label}
      className="flex flex-wrap items-center gap-2 border-b border-waiting-line bg-waiting-wash px-4 py-2.5 text-sm"
    >
      <p role="alert" className="min-w-0 flex-1 basis-56">
        {props.words}
      </p>
      <span className="flex flex-1 justify-end gap-2">{props.children}</span>
    </div>
  )
}
