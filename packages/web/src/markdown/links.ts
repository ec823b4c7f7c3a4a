/** Which addresses from a model a person may click. Everything else is shown as its text. */

const PROTOCOLS = new Set(['http:', 'https:', 'mailto:'])

/**
 * The address when it may be a link; undefined for scripts, data, files, and anything that is no
 * address.
 */
export function safeHref(href: string | undefined): string | undefined {
  if (href === undefined || href === '') return undefined
  if (!URL.canParse(href)) return undefined
  const url = new URL(href)
  return PROTOCOLS.has(url.protocol) ? url.href : undefined
}
