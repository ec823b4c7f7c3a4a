/** Have the browser save this text as a file. */
export function saveText(name: string, text: string): void {
  const type = name.endsWith('.md') ? 'text/markdown' : 'text/plain'
  const url = URL.createObjectURL(new Blob([text], { type: `${type};charset=utf-8` }))
  const link = document.createElement('a')
  link.href = url
  link.download = name
  link.click()
  // The download has begun by then; the bytes need not be kept.
  setTimeout(() => URL.revokeObjectURL(url), 10_000)
}
