/**
 * Cost of drawing an SVG, before a browser tries. References multiply: a few kilobytes of nested
 * `<use>`, patterns, masks or filters are billions of shapes, and no browser can stop.
 */

/** Shapes, about a second of drawing on a small machine. A plot of 20,000 points costs 40,000. */
const MOST_COST = 200_000
/** UTF-16 units. */
const MOST_CHARS = 4 * 1024 * 1024
const MOST_DEPTH = 300
/** A filter's step works on all pixels of its region. */
const FILTER_STEP = 500
/** UTF-16 units of a path or a text that cost as much as one more shape. */
const CHARS_PER_SHAPE = 40

/** An entity that contains another one or is elsewhere, and an image that is a drawing. */
const NESTED_TEXT = /<!ENTITY[^>]*(?:&(?!#)|SYSTEM|PUBLIC)|data:image\/svg/i
const REFERENCE = /url\(\s*(?:"|'|&quot;)?#([^"')\s]+)/g

/** False as well where it is not well-formed: that is for the browser to say. */
export function isTooComplex(svg: string): boolean {
  if (svg.length > MOST_CHARS || NESTED_TEXT.test(svg)) return true
  const document = new DOMParser().parseFromString(svg, 'image/svg+xml')
  const root = document.documentElement
  if (document.querySelector('parsererror') !== null) return false
  const targets = new Map<string, Element>()
  for (const element of document.querySelectorAll('[id]'))
    if (!targets.has(element.id)) targets.set(element.id, element)
  const styles = [...document.querySelectorAll('style')].map(({ textContent }) => textContent).join('\n')
  const known = new Map<Element, number>()
  /** Elements that style sheets refer to, which may be any. */
  let styled = 0

  const costOf = (element: Element, depth: number): number => {
    const before = known.get(element)
    if (before !== undefined) return before
    if (depth > MOST_DEPTH) return Infinity
    // A circle of references is not drawn.
    known.set(element, 0)
    let cost = ownCost(element) + styled
    for (const id of referencesOf(element)) {
      const target = targets.get(id)
      if (target !== undefined) cost += costOf(target, depth + 1) * repeats(element, id)
    }
    for (const child of element.children) cost += costOf(child, depth + 1)
    known.set(element, cost)
    return cost
  }
  for (const id of new Set(referencesIn(styles))) {
    const target = targets.get(id)
    if (target !== undefined) styled += costOf(target, 0)
  }
  known.clear()
  return costOf(root, 0) > MOST_COST
}

function ownCost(element: Element): number {
  if (element.localName.startsWith('fe')) return FILTER_STEP
  const written = ['d', 'points'].reduce((sum, name) => sum + (element.getAttribute(name)?.length ?? 0), 0)
  const text = element.children.length === 0 ? (element.textContent?.length ?? 0) : 0
  return 1 + (written + text) / CHARS_PER_SHAPE
}

/** Ids that an element's attributes refer to, once for each time. */
function referencesOf(element: Element): string[] {
  return [...element.attributes].flatMap(({ localName, value }) =>
    localName === 'href' && value.startsWith('#') ? [value.slice(1)] : referencesIn(value),
  )
}

function referencesIn(text: string): string[] {
  return [...text.matchAll(REFERENCE)].map(([, id = '']) => id)
}

/** A marker is drawn at each point of its line. */
function repeats(element: Element, id: string): number {
  const isMarker = [...element.attributes].some(
    ({ localName, value }) => localName.startsWith('marker') && value.includes(`#${id}`),
  )
  if (!isMarker) return 1
  const line = element.getAttribute('d') ?? element.getAttribute('points') ?? ''
  return Math.max(1, (line.match(/-?[\d.]+/g)?.length ?? 0) / 2)
}
