/** Markdown as an answer has it: with math and diagrams, and files beside it. */
import { Markdown, MarkdownFolder } from '../../markdown/markdown.tsx'
import { CannotShow, EncodingNote, useText, type ViewProps, Waiting } from '../parts.tsx'
import TextView from './text-view.tsx'

/** A longer one would hold up the page while it is laid out. */
const MOST_BYTES = 300_000

export default function MarkdownView({ file }: ViewProps) {
  const read = useText(file, MOST_BYTES)
  if (read.state === 'failed') return <CannotShow>{read.why}</CannotShow>
  if (read.state === 'reading') return <Waiting>Loading…</Waiting>
  if (read.more)
    return <TextView file={file} reason="This text is too long to format, so it’s shown as plain text." />
  if (file.size === 0) return <CannotShow>This file is empty.</CannotShow>
  return (
    <>
      <EncodingNote note={read.note} />
      <div
        tabIndex={0}
        role="group"
        aria-label={`Content of ${file.path}`}
        className="min-h-0 flex-1 overflow-auto px-6 py-5 focus-visible:-outline-offset-2 max-sm:px-4"
      >
        <div className="mx-auto max-w-[46rem]">
          <MarkdownFolder value={file.path.split('/').slice(0, -1).join('/')}>
            <Markdown text={withFrontMatter(read.text)} streaming={false} />
          </MarkdownFolder>
        </div>
      </div>
    </>
  )
}

/** A block between two lines of `---` at its beginning is YAML. */
function withFrontMatter(text: string): string {
  return text.replace(/^---\r?\n([^]*?)\r?\n---[ \t]*(?=\r?\n|$)/, '```yaml\n$1\n```')
}
