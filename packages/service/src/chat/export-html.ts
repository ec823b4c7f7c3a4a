/**
 * A chat as one HTML file that needs nothing else: no scripts, no address that is loaded, both
 * themes. What is said in it is Markdown of people and of the model, so nothing of it is HTML.
 */
import type { Entry } from '@sandlot/shared/transcript/entries'
import { type NameOf, entryAsMarkdown } from '@sandlot/shared/transcript/as-markdown'
import { micromark } from 'micromark'
import { gfm, gfmHtml } from 'micromark-extension-gfm'

/** Characters of one entry that are read as Markdown; what is longer stands as it is. */
const MAX_MARKDOWN = 100_000
/** Bytes of images, as base64, in one file. */
const MAX_IMAGES = 16 * 1024 * 1024

const STYLE = `
:root{color-scheme:light dark;--ink:light-dark(#1f1d1a,#e9e6e1);--muted:light-dark(#6b665e,#a8a39b);--line:light-dark(#e4e0d9,#37342f);--panel:light-dark(#f7f5f2,#211f1c);--bubble:light-dark(#efece7,#2a2824);--accent:light-dark(#1f58b5,#8fb4f5)}
*{box-sizing:border-box}
body{margin:0;background:light-dark(#fdfcfb,#191715);color:var(--ink);font:16px/1.6 ui-sans-serif,system-ui,sans-serif;overflow-wrap:anywhere}
main{max-width:46rem;margin:0 auto;padding:3rem 1.25rem 5rem}
header{border-bottom:1px solid var(--line);margin-bottom:2rem;padding-bottom:1rem}
h1{font-size:1.75rem;line-height:1.25;margin:0 0 .25rem}
h2{font-size:1.25rem;line-height:1.3}
section>h2:first-child{font-size:.8125rem;font-weight:600;color:var(--muted);margin:0 0 .25rem}
section{margin:1.5rem 0}
section>h2+p{margin-top:.25rem}
section>:last-child,details>:last-child{margin-bottom:0}
.person{background:var(--bubble);border-radius:1rem;padding:.875rem 1.125rem;margin-left:10%}
.comment{color:var(--muted);font-size:.9375rem}
details,.aside{border:1px solid var(--line);border-radius:.75rem;background:var(--panel);padding:.5rem .875rem;font-size:.875rem;margin:.5rem 0}
.aside{border:0;background:none;color:var(--muted)}
summary{cursor:pointer}
a{color:var(--accent)}
pre,code{font:.8125rem/1.5 ui-monospace,Menlo,Consolas,monospace}
pre{overflow-x:auto;background:var(--panel);border:1px solid var(--line);border-radius:.5rem;padding:.75rem;white-space:pre-wrap}
:not(pre)>code{background:var(--panel);border-radius:.25rem;padding:.1em .3em}
blockquote{margin:0;padding-left:1rem;border-left:3px solid var(--line)}
table{border-collapse:collapse;display:block;overflow-x:auto}
th,td{border:1px solid var(--line);padding:.25rem .6rem;text-align:left}
img{max-width:100%;border-radius:.5rem}
time{color:var(--muted);font-size:.875rem}
@media print{details{break-inside:avoid}.person{margin-left:0}}
`

export class HtmlExport {
  readonly #nameOf: NameOf
  #imageBytes = 0

  constructor(nameOf: NameOf) {
    this.#nameOf = nameOf
  }

  head(title: string, about: string): string {
    const name = escaped(title)
    return `<!doctype html>
<html><head><meta charset="utf-8"><meta name="viewport" content="width=device-width,initial-scale=1">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'; img-src data:">
<title>${name}</title><style>${STYLE}</style></head>
<body><main><header><h1 dir="auto">${name}</h1><time>${escaped(about)}</time></header>
`
  }

  tail(): string {
    return '</main></body></html>\n'
  }

  /** `turning`: what is said before it. */
  entry(entry: Entry, turning?: string): string {
    const before = turning === undefined ? '' : `<div class="aside">${html(turning)}</div>\n`
    return before + this.#entry(entry)
  }

  /** Empty: there is nothing of it to say. */
  #entry(entry: Entry): string {
    const markdown = entryAsMarkdown(entry, this.#nameOf)
    if (markdown === undefined) return ''
    if (entry.type === 'call') {
      // Its first line is its title and how it ended.
      const [title = '', ...rest] = markdown.split('\n\n')
      return `<details><summary>${inner(html(title))}</summary>${html(rest.join('\n\n'))}</details>\n`
    }
    if (entry.type === 'message') {
      const who = entry.role === 'user' ? 'person' : 'agent'
      return `<section class="${who}" dir="auto">${html(markdown)}${this.#images(entry)}</section>\n`
    }
    if (entry.type === 'comment') return `<section class="comment" dir="auto">${html(markdown)}</section>\n`
    return `<div class="aside">${html(markdown)}</div>\n`
  }

  /** Those that there is room for; the others are named in the text. */
  #images({ images = [] }: Extract<Entry, { type: 'message' }>): string {
    return images
      .map(({ mimeType, data }) => {
        if (data === '' || !/^image\/[a-z+.-]+$/.test(mimeType)) return ''
        if (!/^[A-Za-z0-9+/=]+$/.test(data) || this.#imageBytes + data.length > MAX_IMAGES) return ''
        this.#imageBytes += data.length
        return `<p><img alt="" src="data:${mimeType};base64,${data}"></p>`
      })
      .join('')
  }
}

/** Raw HTML is shown as it was written, and links lead to the web only. */
function html(markdown: string): string {
  if (markdown.length > MAX_MARKDOWN) return `<pre>${escaped(markdown)}</pre>`
  const page = micromark(markdown, { extensions: [gfm()], htmlExtensions: [gfmHtml()] })
  // Nothing is loaded: an image elsewhere is its words.
  return page.replaceAll(/<img src="[^"]*" alt="([^"]*)"[^>]*>/g, '<em>$1</em>')
}

/** The content of one paragraph. */
function inner(paragraph: string): string {
  return paragraph.replace(/^<p>/, '').replace(/<\/p>$/, '')
}

function escaped(text: string): string {
  return text
    .replaceAll('&', '&amp;')
    .replaceAll('<', '&lt;')
    .replaceAll('>', '&gt;')
    .replaceAll('"', '&quot;')
}
