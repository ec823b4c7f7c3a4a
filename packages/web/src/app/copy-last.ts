/** Copying from the end of a chat by key. */
import type { Entry } from '@sandlot/shared/transcript/entries'
import { writeClipboard } from '../ui/copy-button.tsx'
import { showToast } from '../ui/toasts.tsx'

type Entries = readonly Entry[] | undefined

export function copyLastReply(entries: Entries): void {
  void copy(answers(entries)[0], 'Last answer copied.', 'No answer yet.')
}

export function copyLastCode(entries: Entries): void {
  const code = answers(entries).flatMap((text) => codeBlocks(text).at(-1) ?? [])[0]
  void copy(code, 'Last code block copied.', 'No code blocks in this chat.')
}

/** The last first. */
function answers(entries: Entries): string[] {
  return (entries ?? [])
    .flatMap((entry) => (entry.type === 'message' && entry.role === 'assistant' ? [entry.text] : []))
    .toReversed()
}

/** The code blocks of a Markdown text, an open one too. */
function codeBlocks(text: string): string[] {
  const blocks: string[] = []
  let open: { fence: string; lines: string[] } | null = null
  for (const line of text.split('\n')) {
    const fence = /^ {0,3}(`{3,}|~{3,})/.exec(line)?.[1]
    if (open === null) {
      if (fence !== undefined) open = { fence, lines: [] }
    } else if (fence !== undefined && fence.startsWith(open.fence) && line.trim() === fence) {
      blocks.push(open.lines.join('\n'))
      open = null
    } else open.lines.push(line)
  }
  if (open !== null) blocks.push(open.lines.join('\n'))
  return blocks
}

async function copy(text: string | undefined, done: string, nothing: string): Promise<void> {
  if (text === undefined) return showToast(nothing)
  try {
    await writeClipboard(text)
  } catch (error) {
    console.warn('Nothing was copied.', error)
    return showToast('Your browser doesn’t allow copying here.')
  }
  showToast(done)
}
